// Executor: where the runs of a study take place: processes of this machine, steps of a Slurm allocation, or jobs.
//
// A run is the command `PROGRAM train CONFIG` with its ranks, all of whose processes carry the mark RIDGELINE_TRIAL=STUDY/RUN in
// their environment. A handle is a line of text that finds the run again, also from another process: a tuner that was
// killed is followed by one that calls recover() with the handles that it had stored.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ridgeline::study {

struct RunOrder {
  int64_t run = 0;                   // id of the study's store
  std::string study = {};                 // StudyStore::id
  std::vector<std::string> command = {};  // without what starts ranks: "/path/ridgeline", "train", "/path/trial.toml"
  std::string folder = {};                // of the run; exists
  std::string log = {};                   // file in it for stdout and stderr
  int64_t ranks = 1;
  double deadline_seconds = 0;    // for a queue's time limit; the tuner itself keeps it as well
  double memory_limit_bytes = 0;  // of a process; 0: none

  std::string mark() const;  // "RIDGELINE_TRIAL=STUDY/RUN"
  std::string name() const;  // of a Slurm step or job
};

// How a run's command ended.
struct Ending {
  int exit_code = 0;
  int signal = 0;               // not 0: it was killed by it
  bool kernel_ran_out = false;  // the kernel killed some process for memory while it ran
  std::string fault = {};       // not empty: the executor's own failure (a node lost, a job cancelled), not the run's
  bool is_late = false;         // ended by a queue's time limit
};

class Executor {
 public:
  virtual ~Executor() = default;

  virtual bool has_room(int64_t ranks) const = 0;
  virtual int64_t nodes_of(int64_t ranks) const = 0;
  // Throws Failure where nothing can be started.
  virtual std::string start(const RunOrder& order) = 0;
  // Whether it has left the queue; a deadline counts from then.
  virtual bool is_running(const std::string& handle) = 0;
  // Nothing while it waits or runs.
  virtual std::optional<Ending> poll(const std::string& handle) = 0;
  // Ends all its processes and returns when they are gone. What has ended already is left alone.
  virtual void end(const std::string& handle) = 0;
  // After the tuner was started again: the handle to go on with where the run of the earlier one still waits or runs,
  // or has left its exit code. Else nothing, and whatever is left of it has been ended. `handle` is empty where the
  // tuner was killed before it had stored it.
  virtual std::optional<std::string> recover(const RunOrder& order, const std::string& handle) = 0;
  virtual double poll_seconds() const = 0;  // a good pause between polls
};

struct ExecutorOptions {
  std::string kind = "local";  // local, srun, sbatch
  int64_t slots = 1;           // runs that go on at once
  int64_t devices_per_node = 1;
  std::vector<std::string> slurm_options = {};  // further words for srun or sbatch: "--account=abc"
};

// Throws InputError where the kind cannot be used here (no allocation, no Slurm).
std::unique_ptr<Executor> make_executor(const ExecutorOptions& options);

// One a kind; see the files of the same names.
std::unique_ptr<Executor> make_local_executor(const ExecutorOptions& options);
std::unique_ptr<Executor> make_slurm_step_executor(const ExecutorOptions& options);
std::unique_ptr<Executor> make_slurm_job_executor(const ExecutorOptions& options);

}  // namespace ridgeline::study
