#include "launch/local.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "launch/lines.h"

namespace ridgeline::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostRanks = 4096;
constexpr int kInterrupted = 3;         // exit code of a rank that saved and stopped as it was asked to
constexpr double kInterruptGrace = 60;  // its peers may still be writing their part

// A folder of this run alone, for the rendezvous file.
class ScratchFolder {
 public:
  ScratchFolder() {
    const char* temporary = std::getenv("TMPDIR");
    path_ = fmt::format("{}/ridgeline-XXXXXX", temporary != nullptr && *temporary != '\0' ? temporary : "/tmp");
    if (mkdtemp(path_.data()) == nullptr) {
      throw Failure("cannot make a folder {}: {}; set TMPDIR to a folder that can be written", path_,
                    std::strerror(errno));
    }
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Signals arrive through a descriptor while this lives.
class Signals {
 public:
  Signals() {
    sigset_t watched;
    sigemptyset(&watched);
    for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&watched, number);
    sigprocmask(SIG_BLOCK, &watched, &before_);
    descriptor_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor_ < 0) throw Failure("signalfd: {}", std::strerror(errno));
  }
  ~Signals() {
    close(descriptor_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  int descriptor() const { return descriptor_; }
  const sigset_t& before() const { return before_; }

  // The next SIGINT, SIGTERM or SIGUSR1 that waits, 0 where none does; SIGCHLD only wakes.
  int next() const {
    signalfd_siginfo info{};
    while (read(descriptor_, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGCHLD) return static_cast<int>(info.ssi_signo);
    }
    return 0;
  }

 private:
  sigset_t before_;
  int descriptor_ = -1;
};

class LocalRanks {
 public:
  explicit LocalRanks(const LocalRun& run) : run_(run), processes_(static_cast<size_t>(run.ranks), -1) {}

  ~LocalRanks() {
    signal_all(SIGKILL);
    for (const pid_t process : processes_) {
      if (process > 0) waitpid(process, nullptr, 0);
    }
  }

  int run() {
    for (int rank = 0; rank < run_.ranks; ++rank) start(rank);
    while (running() > 0) {
      wait_for_news();
      while (const int number = signals_.next()) forward(number);
      reap();
      keep_deadline();
    }
    for (LineForwarder& output : outputs_) output.pump();
    return first_failure_.value_or(0);
  }

 private:
  void start(int rank);
  [[noreturn]] void become_rank(int rank, int stdout_pipe, int stderr_pipe, int report, pid_t parent);
  void wait_for_news();
  void forward(int number);
  void reap();
  void rank_ended(int rank, int status);
  void keep_deadline();
  void set_deadline(double seconds);
  void signal_all(int number) const;
  int running() const {
    return static_cast<int>(std::count_if(processes_.begin(), processes_.end(), [](pid_t pid) { return pid > 0; }));
  }

  const LocalRun& run_;
  ScratchFolder scratch_;
  Signals signals_;
  std::vector<pid_t> processes_;  // by rank; -1 once it has ended
  std::vector<LineForwarder> outputs_;
  std::optional<int> first_failure_;
  int interrupts_ = 0;
  std::set<int> forwarded_;
  std::optional<Clock::time_point> deadline_;
  int next_signal_ = SIGTERM;  // what the deadline sends
};

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw Failure("cannot make a pipe: {}", std::strerror(errno));
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    if (read_end >= 0) close(read_end);
    if (write_end >= 0) close(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int release_reader() {
    fcntl(read_end, F_SETFL, O_NONBLOCK);
    return std::exchange(read_end, -1);
  }
};

void LocalRanks::start(int rank) {
  std::optional<Pipe> standard_output, standard_error;
  if (rank > 0) {
    standard_output.emplace();
    standard_error.emplace();
  }
  Pipe report;  // carries errno where exec fails; closes by itself where it succeeds
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) throw Failure("cannot start rank {}: fork: {}", rank, std::strerror(errno));
  if (process == 0) {
    become_rank(rank, standard_output ? standard_output->write_end : STDOUT_FILENO,
                standard_error ? standard_error->write_end : STDERR_FILENO, report.write_end, parent);
  }
  setpgid(process, process);  // in both processes: whoever comes first
  processes_[static_cast<size_t>(rank)] = process;
  if (rank > 0) {
    outputs_.emplace_back(standard_output->release_reader(), STDOUT_FILENO, "");
    outputs_.emplace_back(standard_error->release_reader(), STDERR_FILENO, fmt::format("[rank {}] ", rank));
  }
  close(std::exchange(report.write_end, -1));
  int error = 0;
  ssize_t count;
  do count = read(report.read_end, &error, sizeof error);
  while (count < 0 && errno == EINTR);
  if (count == sizeof error) throw Failure("cannot start {}: {}", run_.command.front(), std::strerror(error));
}

void LocalRanks::become_rank(int rank, int stdout_pipe, int stderr_pipe, int report, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before prctl
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(stdout_pipe, STDOUT_FILENO);
  dup2(stderr_pipe, STDERR_FILENO);
  const std::string world = fmt::format("{}", run_.ranks);
  const std::string own = fmt::format("{}", rank);
  for (const char* name : {"MASTER_PORT", "GROUP_RANK", "ROLE_RANK"}) unsetenv(name);
  for (const char* name : {"RANK", "LOCAL_RANK"}) setenv(name, own.c_str(), 1);
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) setenv(name, world.c_str(), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("RIDGELINE_LAUNCHER", "local", 1);
  setenv("RIDGELINE_RENDEZVOUS_FILE", (scratch_.path() + "/rendezvous").c_str(), 1);
  for (const auto& [name, value] : run_.variables) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : run_.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  sigprocmask(SIG_SETMASK, &signals_.before(), nullptr);
  execv(arguments[0], arguments.data());
  const int error = errno;
  const ssize_t told = write(report, &error, sizeof error);
  _exit(told == sizeof error ? 127 : 126);
}

void LocalRanks::wait_for_news() {
  std::vector<pollfd> watched = {{.fd = signals_.descriptor(), .events = POLLIN, .revents = 0}};
  for (const LineForwarder& output : outputs_) {
    watched.push_back({.fd = output.descriptor(), .events = POLLIN, .revents = 0});
  }
  int timeout = -1;
  if (deadline_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now()).count();
    timeout = static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
  }
  if (poll(watched.data(), watched.size(), timeout) < 0 && errno != EINTR) {
    throw Failure("poll: {}", std::strerror(errno));
  }
  for (size_t index = 0; index < outputs_.size(); ++index) {
    if (watched[index + 1].revents != 0) outputs_[index].pump();
  }
}

void LocalRanks::forward(int number) {
  if (number == SIGINT) ++interrupts_;
  forwarded_.insert(number);
  signal_all(interrupts_ > 1 ? SIGKILL : number);
}

void LocalRanks::reap() {
  for (size_t rank = 0; rank < processes_.size(); ++rank) {
    if (processes_[rank] <= 0) continue;
    int status = 0;
    if (waitpid(processes_[rank], &status, WNOHANG) != processes_[rank]) continue;
    kill(-processes_[rank], SIGKILL);  // what it may have left in its group
    processes_[rank] = -1;
    rank_ended(static_cast<int>(rank), status);
  }
}

void LocalRanks::rank_ended(int rank, int status) {
  const bool killed = WIFSIGNALED(status);
  // A rank that had not come as far as to listen to signals has ended as it was asked to, like one that stopped.
  const bool asked = killed && interrupts_ <= 1 && forwarded_.contains(WTERMSIG(status));
  const int code = asked ? kInterrupted : killed ? 1 : WEXITSTATUS(status);
  if (code == 0 || first_failure_) return;
  first_failure_ = code;
  if (killed && interrupts_ > 1) {
    spdlog::warn("interrupted twice: killed all ranks, nothing more was saved");
  } else if (asked) {
    spdlog::warn("rank {} was ended by a signal before it could train; nothing is lost", rank);
  } else if (killed) {
    const int number = WTERMSIG(status);
    spdlog::error("rank {} was killed by signal {} ({})", rank, number,
                  number == SIGKILL ? "out of memory?" : strsignal(number));
  } else if (code != kInterrupted) {
    spdlog::error("rank {} ended with exit code {}", rank, code);
  }
  if (running() > 0) set_deadline(code == kInterrupted ? kInterruptGrace : run_.grace_seconds);
}

void LocalRanks::set_deadline(double seconds) {
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void LocalRanks::keep_deadline() {
  if (!deadline_ || Clock::now() < *deadline_ || running() == 0) return;
  spdlog::warn("{} rank{} did not end by {}; sending {}", running(), running() == 1 ? "" : "s",
               running() == 1 ? "itself" : "themselves", next_signal_ == SIGTERM ? "SIGTERM" : "SIGKILL");
  signal_all(next_signal_);
  next_signal_ = SIGKILL;
  set_deadline(run_.grace_seconds);
}

void LocalRanks::signal_all(int number) const {
  for (const pid_t process : processes_) {
    if (process > 0) kill(-process, number);
  }
}

}  // namespace

int run_local_ranks(const LocalRun& run) {
  RIDGELINE_ASSERT(!run.command.empty());
  if (run.ranks < 1 || run.ranks > kMostRanks) {
    throw InputError("--nproc {}: expected 1 to {} ranks on this machine", run.ranks, kMostRanks);
  }
  return LocalRanks(run).run();
}

}  // namespace ridgeline::launch
