// Runs as steps of the Slurm allocation that the tuner was started in, on disjoint nodes. `srun` ends its tasks on
// SIGTERM, which the kernel sends it where the tuner dies; what is left of a step even so is cancelled by its name when
// the tuner is started again.
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

#include "core/error.h"
#include "core/text.h"
#include "study/executor.h"
#include "study/processes.h"

namespace ridgeline::study {
namespace {

constexpr int kPatienceSeconds = 30;  // for srun to end its tasks

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

class SlurmStepExecutor : public Executor {
 public:
  explicit SlurmStepExecutor(const ExecutorOptions& options) : options_(options) {
    const char* job = std::getenv("SLURM_JOB_ID");
    if (job == nullptr) {
      throw InputError(
          "executor.kind = \"srun\": this is no Slurm allocation (SLURM_JOB_ID is not set); start the tuner in one "
          "(salloc, sbatch), or use \"sbatch\"");
    }
    job_ = job;
    const auto hosts = output_of({"scontrol", "show", "hostnames"});  // of SLURM_JOB_NODELIST
    if (!hosts || hosts->empty()) throw Failure("`scontrol show hostnames` does not name the nodes of job {}", job_);
    free_nodes_ = lines_of(*hosts);
    all_nodes_ = static_cast<int64_t>(free_nodes_.size());
  }
  ~SlurmStepExecutor() override {
    while (!running_.empty()) end(std::string(running_.begin()->first));
  }

  bool has_room(int64_t ranks) const override {
    if (running_.empty()) return true;  // what is too large for all nodes together is refused by start()
    return static_cast<int64_t>(running_.size()) < options_.slots &&
           static_cast<int64_t>(free_nodes_.size()) >= nodes_of(ranks);
  }
  int64_t nodes_of(int64_t ranks) const override {
    return (ranks + options_.devices_per_node - 1) / options_.devices_per_node;
  }
  bool is_running(const std::string&) override { return true; }
  double poll_seconds() const override { return 0.2; }

  std::string start(const RunOrder& order) override {
    const int64_t count = nodes_of(order.ranks);
    if (count > all_nodes_) {
      throw InputError("a trial on {} devices needs {} nodes of {}, and job {} has {}; ask Slurm for more, or allow fewer "
                       "devices",
                       order.ranks, count, options_.devices_per_node, job_, all_nodes_);
    }
    const std::vector<std::string> nodes(free_nodes_.end() - count, free_nodes_.end());
    ProcessOrder process{.command = {"/usr/bin/env", "srun", "--quiet", "--kill-on-bad-exit=1", "--exact",
                                     "--job-name=" + order.name(), fmt::format("--nodes={}", count),
                                     fmt::format("--ntasks={}", order.ranks), "--nodelist=" + join(nodes, ",")},
                         .variables = {{"RIDGELINE_TRIAL", fmt::format("{}/{}", order.study, order.run)}},
                         .log = order.log,
                         .memory_limit_bytes = order.memory_limit_bytes,
                         .death_signal = SIGTERM};
    process.command.insert(process.command.end(), options_.slurm_options.begin(), options_.slurm_options.end());
    process.command.insert(process.command.end(), order.command.begin(), order.command.end());
    const pid_t leader = start_process(process);
    free_nodes_.resize(free_nodes_.size() - static_cast<size_t>(count));
    const std::string handle = identity_of(leader);
    running_[handle] = {leader, order.mark(), order.name(), nodes};
    return handle;
  }

  std::optional<Ending> poll(const std::string& handle) override {
    const auto found = running_.find(handle);
    RIDGELINE_ASSERT(found != running_.end());
    int status = 0;
    if (waitpid(found->second.leader, &status, WNOHANG) == 0) return std::nullopt;
    give_back(found);
    Ending ending;
    (WIFSIGNALED(status) ? ending.signal : ending.exit_code) = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    return ending;
  }

  void end(const std::string& handle) override {
    const auto found = running_.find(handle);
    if (found == running_.end()) return;
    kill(found->second.leader, SIGTERM);
    const timespec pause{0, 50'000'000};
    for (int i = 0; i < kPatienceSeconds * 20 && waitpid(found->second.leader, nullptr, WNOHANG) == 0; ++i) {
      nanosleep(&pause, nullptr);
    }
    cancel_steps(found->second.name, found->second.mark);
    end_process(found->second.leader, found->second.mark);
    give_back(found);
  }

  std::optional<std::string> recover(const RunOrder& order, const std::string& handle) override {
    const pid_t leader = static_cast<pid_t>(std::strtol(handle.c_str(), nullptr, 10));
    if (leader > 1 && identity_of(leader) == handle) kill(leader, SIGTERM);
    cancel_steps(order.name(), order.mark());
    kill_marked(order.mark());
    return std::nullopt;
  }

 private:
  struct Running {
    pid_t leader;  // srun
    std::string mark;
    std::string name;
    std::vector<std::string> nodes;
  };

  void give_back(std::map<std::string, Running>::iterator run) {
    free_nodes_.insert(free_nodes_.end(), run->second.nodes.begin(), run->second.nodes.end());
    running_.erase(run);
  }

  // Steps that srun has lost: looked for by name until Slurm knows of none. Where Slurm has no control groups it loses
  // processes whose parents it has killed, and then waits for them: those on this machine are found by their mark.
  void cancel_steps(const std::string& name, const std::string& mark) const {
    const timespec pause{0, 200'000'000};
    for (int i = 0; i < kPatienceSeconds * 5; ++i) {
      const auto steps = output_of({"squeue", "--steps", "--noheader", "--format=%i %j", "--jobs=" + job_});
      bool found = false;
      for (const std::string& line : lines_of(steps.value_or(""))) {
        const size_t blank = line.find(' ');
        if (blank == std::string::npos || line.substr(blank + 1) != name) continue;
        found = true;
        output_of({"scancel", "--signal=KILL", line.substr(0, blank)});
      }
      if (!found) return;
      if (i >= 5) kill_marked(mark);  // not at once: srun is one of them, and may be about to end the step itself
      nanosleep(&pause, nullptr);
    }
    throw Failure("Slurm still has a step {} of job {} after {} s of cancelling it", name, job_, kPatienceSeconds);
  }

  ExecutorOptions options_;
  std::string job_;
  std::vector<std::string> free_nodes_;
  int64_t all_nodes_ = 0;
  std::map<std::string, Running> running_;  // by handle
};

}  // namespace

std::unique_ptr<Executor> make_slurm_step_executor(const ExecutorOptions& options) {
  return std::make_unique<SlurmStepExecutor>(options);
}

}  // namespace ridgeline::study
