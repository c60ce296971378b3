// The study's file: every start and every end of a trial is one transaction, so that a tuner that is killed at any
// moment finds what it has to know when it is started again.
//
//   StudyStore store = StudyStore::open("study.sqlite", identity);   // made where there is none
//   const auto [trial, run] = store.begin_trial(key, costs, bytes);  // before the process is started
//   store.set_handle(run, handle);
//   store.end_trial(run_record, trial_record);                       // both at once
//
// Tables: study (name, value), sessions, trials, runs, earlier; columns are named like the fields of study/records.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "study/database.h"
#include "study/records.h"

namespace ridgeline::study {

struct Started {
  int64_t trial = 0;
  int64_t run = 0;
};

class StudyStore {
 public:
  // For the tuner. `identity`: lines "key = value" of all that decides which points there are and what they cost; a file
  // that was made by another study is an InputError that names the first line in which they differ. `beginning`: asked
  // only where the file is made, and kept in it: what earlier studies say later changes nothing.
  StudyStore(const std::string& path, const std::string& identity, const std::function<Beginning()>& beginning = {});
  // For readers, beside a tuner at work.
  explicit StudyStore(const std::string& path);

  const std::string& id() const { return id_; }  // no other study has it
  const std::string& path() const { return database_.path(); }
  std::string identity();
  double limit_bytes();  // of a device when it began; 0: not known
  std::vector<search::EarlierTrial> earlier();
  std::vector<TrialRecord> trials();  // by number
  std::vector<RunRecord> runs();      // by id
  double active_seconds();            // that tuners were at work on it
  double node_seconds();              // of all runs that have ended

  // A trial and, where processes will run it, its first run.
  Started begin_trial(const std::string& point, const std::vector<double>& predicted_costs, double predicted_bytes,
                      int64_t nodes);
  int64_t begin_run(int64_t trial, Purpose purpose, int64_t round, int64_t nodes);
  void set_handle(int64_t run, const std::string& handle);
  void end_run(const RunRecord& run);
  // The trial's place among the ends is set here and returned.
  int64_t end_trial(const RunRecord& run, const TrialRecord& trial);
  // A trial that took no process: begun and ended in one transaction; returns its number.
  int64_t record_trial(const TrialRecord& trial);

 private:
  void check_format();
  void make(const std::string& identity, const Beginning& beginning);
  std::string value_of(const char* name);
  void insert_trial(const std::string& point, const std::vector<double>& costs, double bytes,
                    const std::string& inherited = "");
  int64_t insert_run(int64_t trial, Purpose purpose, int64_t round, int64_t nodes);
  void update_run(const RunRecord& run);
  int64_t update_trial(const TrialRecord& trial);
  void seen();  // this session is still at work

  Database database_;
  std::string id_;
  int64_t session_ = 0;
};

double now_seconds();  // since 1970

}  // namespace ridgeline::study
