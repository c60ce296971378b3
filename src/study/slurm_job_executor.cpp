// Runs as Slurm jobs, one each. A job outlives the tuner: one that still waits or runs, or that has ended meanwhile and
// left its exit code in its folder, is taken up again by its name when the tuner is started anew.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/error.h"
#include "study/executor.h"
#include "study/processes.h"

namespace ridgeline::study {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kAskEvery = std::chrono::seconds(2);    // Slurm's controller is shared by everyone
constexpr auto kFileGrace = std::chrono::seconds(20);  // until a file that another node wrote is seen here
constexpr const char* kExitFile = "/exit";

std::string quoted(const std::string& word) {  // for a shell
  std::string text = "'";
  for (const char character : word) {
    if (character == '\'') {
      text += "'\\''";
    } else {
      text += character;
    }
  }
  text += "'";
  return text;
}

std::string without_line_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// "123 /folder": the job and where its exit code will lie.
struct Handle {
  std::string job, folder;
  static Handle parse(const std::string& text) {
    const size_t blank = text.find(' ');
    return {text.substr(0, blank), blank == std::string::npos ? "" : text.substr(blank + 1)};
  }
};

std::optional<int> exit_code_in(const std::string& folder) {
  std::ifstream stream(folder + kExitFile);
  int code = 0;
  if (!(stream >> code)) return std::nullopt;
  return code;
}

class SlurmJobExecutor : public Executor {
 public:
  explicit SlurmJobExecutor(const ExecutorOptions& options) : options_(options) {
    if (!output_of({"sbatch", "--version"})) {
      throw InputError("executor.kind = \"sbatch\": there is no program sbatch here; use \"local\", or a login node");
    }
  }

  bool has_room(int64_t) const override { return static_cast<int64_t>(jobs_.size()) < options_.slots; }
  int64_t nodes_of(int64_t ranks) const override {
    return (ranks + options_.devices_per_node - 1) / options_.devices_per_node;
  }
  double poll_seconds() const override { return 0.5; }

  std::string start(const RunOrder& order) override {
    write_script(order);
    std::vector<std::string> command = {"sbatch",
                                        "--parsable",
                                        "--job-name=" + order.name(),
                                        fmt::format("--nodes={}", nodes_of(order.ranks)),
                                        fmt::format("--ntasks={}", order.ranks),
                                        fmt::format("--time={:.0f}", std::ceil(order.deadline_seconds / 60) + 2),
                                        "--output=" + order.log};
    command.insert(command.end(), options_.slurm_options.begin(), options_.slurm_options.end());
    command.push_back(order.folder + "/job.sh");
    const auto said = output_of(command);
    if (!said) throw Failure("sbatch refused the job of {}; try {}/job.sh by hand", order.name(), order.folder);
    const std::string job = without_line_end(said->substr(0, said->find(';')));  // "123;cluster"
    const std::string handle = job + " " + order.folder;
    jobs_[handle] = {};
    return handle;
  }

  bool is_running(const std::string& handle) override {
    const std::string state = state_of(handle);
    return !state.empty() && state != "PENDING" && state != "CONFIGURING";
  }

  std::optional<Ending> poll(const std::string& handle) override {
    const Handle job = Handle::parse(handle);
    Job& known = jobs_[handle];
    if (const auto code = exit_code_in(job.folder)) {
      jobs_.erase(handle);
      // What a shell says of a process that a signal killed.
      return *code > 128 ? Ending{.signal = *code - 128} : Ending{.exit_code = *code};
    }
    if (!state_of(handle).empty()) {
      known.gone_since.reset();
      return std::nullopt;
    }
    if (!known.gone_since) known.gone_since = Clock::now();
    if (Clock::now() - *known.gone_since < kFileGrace) return std::nullopt;
    const std::string last = last_state(job.job);
    jobs_.erase(handle);
    if (last == "TIMEOUT" || last == "DEADLINE") return Ending{.is_late = true};
    if (last == "OUT_OF_MEMORY") return Ending{.signal = SIGKILL, .kernel_ran_out = true};
    return Ending{.fault = fmt::format("job {} ended without an exit code; Slurm says {}", job.job,
                                       last.empty() ? "nothing of it any more" : last)};
  }

  void end(const std::string& handle) override {
    cancel(Handle::parse(handle).job);
    jobs_.erase(handle);
  }

  std::optional<std::string> recover(const RunOrder& order, const std::string& handle) override {
    std::string job = Handle::parse(handle).job;
    if (job.empty()) {
      // Killed between sbatch and the store.
      job = without_line_end(output_of({"squeue", "--noheader", "--format=%i", fmt::format("--name={}", order.name())}).value_or(""));
      job = job.substr(0, job.find('\n'));
    }
    if (job.empty() && !exit_code_in(order.folder)) return std::nullopt;
    if (job.empty()) job = "0";
    const std::string ours = fmt::format("{} {}", job, order.folder);
    jobs_[ours] = {};
    return ours;
  }

 private:
  struct Job {
    std::string state = "PENDING";
    std::optional<Clock::time_point> asked_at, gone_since;
  };

  void write_script(const RunOrder& order) const {
    std::string words;
    for (const std::string& word : order.command) words.append(" ").append(quoted(word));
    std::ofstream script(order.folder + "/job.sh");
    script << "#!/bin/sh\n"
           << "export " << order.mark() << "\n";
    if (order.memory_limit_bytes > 0) script << fmt::format("ulimit -d {:.0f}\n", order.memory_limit_bytes / 1024);
    script << "srun --quiet --kill-on-bad-exit=1" << words << "\n"
           << "echo $? > " << quoted(order.folder + "/exit.part") << "\n"
           << "mv " << quoted(order.folder + "/exit.part") << " " << quoted(order.folder + kExitFile) << "\n";
    script.flush();
    if (!script) throw Failure("{}/job.sh: cannot be written", order.folder);
  }

  // Slurm's word; empty where the queue has it no more. Asked for every few seconds, remembered between.
  std::string state_of(const std::string& handle) {
    Job& job = jobs_[handle];
    if (!job.asked_at || Clock::now() - *job.asked_at >= kAskEvery) {
      job.asked_at = Clock::now();
      job.state = without_line_end(
          output_of({"squeue", "--noheader", "--format=%T", "--jobs=" + Handle::parse(handle).job}).value_or(""));
      if (job.state == "COMPLETED" || job.state == "FAILED" || job.state == "CANCELLED" || job.state == "TIMEOUT" ||
          job.state == "NODE_FAIL" || job.state == "OUT_OF_MEMORY" || job.state == "PREEMPTED") {
        job.state.clear();  // kept for a while after the end
      }
    }
    return job.state;
  }

  // "JobState=TIMEOUT Reason=..." of a job that the controller still remembers.
  std::string last_state(const std::string& job) const {
    const std::string text = output_of({"scontrol", "show", "job", "--oneliner", job}).value_or("");
    const std::string key = "JobState=";
    const size_t begin = text.find(key);
    if (begin == std::string::npos) return "";
    return text.substr(begin + key.size(), text.find(' ', begin) - begin - key.size());
  }

  void cancel(const std::string& job) const {
    const timespec pause{0, 200'000'000};
    for (int i = 0; i < 150; ++i) {
      output_of({"scancel", job});
      nanosleep(&pause, nullptr);
      const std::string state =
          without_line_end(output_of({"squeue", "--noheader", "--format=%T", "--jobs=" + job}).value_or(""));
      if (state.empty() || state == "CANCELLED" || state == "COMPLETED" || state == "FAILED") return;
    }
    throw Failure("Slurm still has job {} after 30 s of cancelling it", job);
  }

  ExecutorOptions options_;
  std::map<std::string, Job> jobs_;  // by handle
};

}  // namespace

std::unique_ptr<Executor> make_slurm_job_executor(const ExecutorOptions& options) {
  return std::make_unique<SlurmJobExecutor>(options);
}

}  // namespace ridgeline::study
