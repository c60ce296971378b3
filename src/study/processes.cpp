#include "study/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"

extern char** environ;

namespace ridgeline::study {
namespace {

constexpr useconds_t kPause = 5'000;

std::string contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (stream) text << stream.rdbuf();
  return text.str();
}

// Pointers for exec, made before the fork: the child may not allocate.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    bool is_replaced = false;
    for (const auto& [name, value] : variables) {
      is_replaced = is_replaced || (text.substr(0, name.size()) == name && text.substr(name.size(), 1) == "=");
    }
    if (!is_replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  return all;
}

struct Prepared {
  char* const* words;
  char* const* variables;
  int log;
  int report;  // where the errno of a failed start goes
  rlim_t memory_limit;
  int death_signal;
  pid_t parent;
};

[[noreturn]] void become(const Prepared& prepared) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  prctl(PR_SET_PDEATHSIG, prepared.death_signal);
  if (getppid() != prepared.parent) _exit(127);  // it died before this could be said
  setsid();
  const int nothing = open("/dev/null", O_RDONLY);
  bool good = nothing >= 0 && dup2(nothing, 0) >= 0 && dup2(prepared.log, 1) >= 0 && dup2(prepared.log, 2) >= 0;
  if (good && prepared.memory_limit > 0) {
    const rlimit limit{prepared.memory_limit, prepared.memory_limit};
    good = setrlimit(RLIMIT_DATA, &limit) == 0;
  }
  if (good) execve(prepared.words[0], prepared.words, prepared.variables);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(prepared.report, &error, sizeof error);
  _exit(127);
}

}  // namespace

pid_t start_process(const ProcessOrder& order) {
  const std::vector<std::string> variables = environment_with(order.variables);
  const std::vector<char*> words = pointers(order.command), environment = pointers(variables);
  const int log = open(order.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log < 0) throw Failure("{}: cannot be opened for writing: {}", order.log, std::strerror(errno));
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    close(log);
    throw Failure("cannot make a pipe: {}", std::strerror(errno));
  }
  const Prepared prepared{words.data(),
                          environment.data(),
                          log,
                          report[1],
                          static_cast<rlim_t>(order.memory_limit_bytes),
                          order.death_signal,
                          getpid()};
  const pid_t process = fork();
  const int fork_error = errno;
  if (process == 0) become(prepared);
  close(log);
  close(report[1]);
  int error = 0;
  const bool failed = process > 0 && read(report[0], &error, sizeof error) == sizeof error;
  close(report[0]);
  if (process < 0) throw Failure("cannot start a process: {}", std::strerror(fork_error));
  if (failed) {
    waitpid(process, nullptr, 0);
    throw Failure("cannot start {}: {}", order.command.front(), std::strerror(error));
  }
  return process;
}

std::string identity_of(pid_t process) {
  const std::string stat = contents(fmt::format("/proc/{}/stat", process));
  const size_t after_name = stat.rfind(')');
  if (after_name == std::string::npos) return "";
  std::istringstream fields(stat.substr(after_name + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) {  // the 22nd is the start time, in ticks since the machine started
    if (!(fields >> field)) return "";
  }
  return fmt::format("{} {}", process, field);
}

std::vector<pid_t> marked_processes(const std::string& mark) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string variables = contents(entry.path().string() + "/environ");
    size_t begin = 0;
    while (begin < variables.size()) {
      const size_t end = std::min(variables.find('\0', begin), variables.size());
      if (std::string_view(variables).substr(begin, end - begin) == mark) {
        found.push_back(static_cast<pid_t>(std::stol(name)));
        break;
      }
      begin = end + 1;
    }
  }
  return found;
}

void kill_marked(const std::string& mark) {
  while (true) {
    const std::vector<pid_t> processes = marked_processes(mark);
    if (processes.empty()) return;
    for (const pid_t process : processes) kill(process, SIGKILL);
    usleep(kPause);
  }
}

void end_process(pid_t leader, const std::string& mark) {
  kill(-leader, SIGKILL);
  kill(leader, SIGKILL);  // it may not have come as far as its session
  waitpid(leader, nullptr, 0);
  kill_marked(mark);
}

namespace {

// All that was written to a file that has no name; closes it.
std::string taken(int file) {
  std::string text;
  std::array<char, 4096> block{};
  lseek(file, 0, SEEK_SET);
  for (ssize_t length = 0; (length = read(file, block.data(), block.size())) > 0;) {
    text.append(block.data(), static_cast<size_t>(length));
  }
  close(file);
  return text;
}

}  // namespace

ProgramEnd run_to_end(const std::vector<std::string>& command) {
  const std::vector<char*> words = pointers(command);
  const int output = memfd_create("output", MFD_CLOEXEC), errors = memfd_create("errors", MFD_CLOEXEC);
  const pid_t process = output >= 0 && errors >= 0 ? fork() : -1;
  if (process == 0) {
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(output, 1);
    dup2(errors, 2);
    execvp(words[0], words.data());
    _exit(127);
  }
  int status = 0;
  while (process > 0 && waitpid(process, &status, 0) != process) {
    if (errno != EINTR) break;
  }
  ProgramEnd end;
  end.succeeded = process > 0 && status == 0;
  end.output = taken(output);
  end.errors = taken(errors);
  return end;
}

std::optional<std::string> output_of(const std::vector<std::string>& command) {
  ProgramEnd end = run_to_end(command);
  if (!end.succeeded) return std::nullopt;
  return std::move(end.output);
}

int64_t kernel_memory_kills() {
  std::istringstream lines(contents("/proc/vmstat"));
  std::string name;
  int64_t count = 0;
  while (lines >> name >> count) {
    if (name == "oom_kill") return count;
  }
  return 0;
}

}  // namespace ridgeline::study
