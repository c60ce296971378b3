// Runs as processes of this machine, each in a session of its own. Nothing outlives the tuner: a run that was under way
// when it was killed is ended and measured anew, since nobody kept its time.
#include <fmt/format.h>
#include <sys/wait.h>

#include <map>

#include "core/error.h"
#include "study/executor.h"
#include "study/processes.h"

namespace ridgeline::study {

std::string RunOrder::mark() const { return fmt::format("RIDGELINE_TRIAL={}/{}", study, run); }
std::string RunOrder::name() const { return fmt::format("ridgeline-{}-{}", study, run); }

namespace {

class LocalExecutor : public Executor {
 public:
  explicit LocalExecutor(int64_t slots) : slots_(slots) {}
  ~LocalExecutor() override {
    for (const auto& [handle, run] : running_) end_process(run.leader, run.mark);
  }

  bool has_room(int64_t) const override { return static_cast<int64_t>(running_.size()) < slots_; }
  int64_t nodes_of(int64_t) const override { return 1; }
  bool is_running(const std::string&) override { return true; }
  double poll_seconds() const override { return 0.05; }

  std::string start(const RunOrder& order) override {
    ProcessOrder process{.command = order.command,
                         .variables = {{"RIDGELINE_TRIAL", fmt::format("{}/{}", order.study, order.run)}},
                         .log = order.log,
                         .memory_limit_bytes = order.memory_limit_bytes};
    process.command.insert(process.command.end(), {"--nproc", std::to_string(order.ranks)});
    const int64_t kills = kernel_memory_kills();
    const pid_t leader = start_process(process);
    const std::string handle = identity_of(leader);
    running_[handle] = {leader, order.mark(), kills};
    return handle;
  }

  std::optional<Ending> poll(const std::string& handle) override {
    const auto found = running_.find(handle);
    RIDGELINE_ASSERT(found != running_.end());
    const Running run = found->second;
    // It stays a zombie, and its number its own, until its group has been killed.
    siginfo_t news{};
    if (waitid(P_PID, static_cast<id_t>(run.leader), &news, WEXITED | WNOHANG | WNOWAIT) != 0) {
      throw InternalError("waitid of a run's process: errno {}", errno);
    }
    if (news.si_pid == 0) return std::nullopt;
    running_.erase(found);
    end_process(run.leader, run.mark);
    Ending ending;
    (news.si_code == CLD_EXITED ? ending.exit_code : ending.signal) = news.si_status;
    ending.kernel_ran_out = kernel_memory_kills() > run.memory_kills;
    return ending;
  }

  void end(const std::string& handle) override {
    const auto found = running_.find(handle);
    if (found == running_.end()) return;
    end_process(found->second.leader, found->second.mark);
    running_.erase(found);
  }

  std::optional<std::string> recover(const RunOrder& order, const std::string& handle) override {
    const pid_t leader = static_cast<pid_t>(std::strtol(handle.c_str(), nullptr, 10));
    if (leader > 1 && identity_of(leader) == handle) kill(-leader, SIGKILL);
    kill_marked(order.mark());
    return std::nullopt;
  }

 private:
  struct Running {
    pid_t leader;
    std::string mark;
    int64_t memory_kills;  // of the kernel, before it was started
  };

  int64_t slots_;
  std::map<std::string, Running> running_;  // by handle
};

}  // namespace

std::unique_ptr<Executor> make_local_executor(const ExecutorOptions& options) {
  return std::make_unique<LocalExecutor>(options.slots);
}

std::unique_ptr<Executor> make_executor(const ExecutorOptions& options) {
  if (options.kind == "srun") return make_slurm_step_executor(options);
  if (options.kind == "sbatch") return make_slurm_job_executor(options);
  return make_local_executor(options);
}

}  // namespace ridgeline::study
