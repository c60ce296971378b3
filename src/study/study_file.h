// The study file of `ridgeline tune`: what is searched, by which objective, within which budget, where trials run.
//
//   StudyFile file = load_study_file("study.toml", {"budget.trials=20"});
//   file.sources.located([&] { ... });          // errors found later name file and line
//
// docs/tune.md explains the keys; they are listed by study_keys().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/schema.h"
#include "search/tune/guesses.h"
#include "search/tune/space_description.h"

namespace ridgeline::study {

enum class ObjectiveKind { measured, simulate, replay };
enum class Prior { simulator, none };
enum class EnergySource { measured, limit };

struct ObjectiveSpec {  // [objective]
  ObjectiveKind kind = ObjectiveKind::measured;
  std::vector<std::string> goals = {"step_seconds"};  // names of search::Objective; the first ranks, several make a front
  std::string table;                                  // of kind replay
  Prior prior = Prior::simulator;
  EnergySource energy = EnergySource::limit;  // of joules_per_token
  std::vector<std::string> energy_counters;   // files; empty: those that the system has
  std::string program;  // whose recipe predicts; empty: the machine's for replay, else ridgeline
};

struct BudgetSpec {  // [budget]; 0: no limit
  int64_t trials = 50;
  double hours = 0;       // that the tuner is at work
  double node_hours = 0;  // of trials
};

struct ExecutorSpec {  // [executor]
  std::string kind = "local";
  int64_t slots = 1;
  double deadline_seconds = 1200;   // of a trial, from its start
  double heartbeat_seconds = 300;   // without a finished step
  double memory_limit_gib = 0;      // of a process, by RLIMIT_DATA; 0: none
  int64_t retries = 2;              // of a trial that infrastructure ended
  std::vector<std::string> command;  // in place of `ridgeline train`
  std::vector<std::string> slurm_options;
  bool keep_folders = false;
};

struct MeasureSpec {  // [measure]
  int64_t steps = 40;        // at most
  int64_t least_steps = 8;   // before a trial may end as measured
  double tolerance = 0.02;   // half the interval's width, share of the median
  double hopeless = 0.1;     // a trial surely slower than the best by this share stops; 0: none does
  int64_t confirm = 3;       // best trials that are measured again
  int64_t confirm_rounds = 3;
  int64_t confirm_steps = 40;
  bool confirm_alone = false;  // also where there is but one to confirm
};

struct FidelitySpec {  // [fidelity]; both 0: trials are whole
  int64_t layers = 0;   // of a trial's model
  int64_t devices = 0;  // of a trial, where tensor * pipeline leave so few
  bool is_cheap() const { return layers > 0 || devices > 0; }
};

struct StudyFile {
  std::string path;
  std::string model;
  std::string machine;
  int64_t devices = 0;
  int64_t global_batch = 0;
  uint64_t seed = 0;
  std::string store;         // empty: the study file's name with .sqlite
  std::string best;          // config that is written at the end; empty: best.toml beside the study file
  std::string learned;       // machine file that is written at the end; empty: none
  std::vector<std::string> warm_start;  // stores of earlier studies
  search::SpaceDescription space;
  ObjectiveSpec objective;
  BudgetSpec budget;
  ExecutorSpec executor;
  MeasureSpec measure;
  FidelitySpec fidelity;

  std::vector<search::Objective> goals;  // of objective.goals
  std::string identity;                  // lines "key = value" of what decides the points and their costs
  Sources sources;
};

// Throws InputError for everything that is wrong with it. Paths in it are relative to the working directory, but for
// those that the defaults put beside the study file.
StudyFile load_study_file(const std::string& path, const std::vector<std::string>& sets = {});

// All keys, as Markdown tables.
std::string study_keys();

// What other files about runs share with it: when a run may end (measure.steps, least_steps, tolerance), and where runs take
// place ([executor]).
void bind_steps(Schema& schema, MeasureSpec& measure);
void bind_executor(Schema& schema, ExecutorSpec& executor);
void check_steps(const MeasureSpec& measure);

// The lines "table.key = value" of what `schema` declares for which `decides` holds.
std::string identity_of(const Schema& schema, const std::function<bool(const std::string& key)>& decides);

}  // namespace ridgeline::study
