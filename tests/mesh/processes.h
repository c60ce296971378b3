// Ranks as processes of their own, to be killed: each runs this test program again, with one disabled test as its main
// function and the environment telling it its rank.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ridgeline::mesh {

// A port that was free a moment ago.
inline int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (::bind(socket, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::runtime_error("no free port");
  }
  ::close(socket);
  return ntohs(address.sin_port);
}

class RankProcesses {
 public:
  // Starts `count` ranks that run the test `main` (a filter of GoogleTest) with SCENARIO in their environment.
  RankProcesses(int count, const std::string& main, const std::string& scenario, bool file_store = false)
      : folder_(make_folder()) {
    const int port = file_store ? 0 : free_port();
    for (int rank = 0; rank < count; ++rank) {
      const pid_t process = fork();
      if (process < 0) throw std::runtime_error("fork failed");
      if (process == 0) become_rank(rank, count, port, main, scenario);
      processes_.push_back(process);
      status_.push_back(-1);
    }
  }
  ~RankProcesses() {
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
      if (status_[rank] == -1) {
        ::kill(processes_[rank], SIGKILL);
        ::waitpid(processes_[rank], nullptr, 0);
      }
    }
    std::filesystem::remove_all(folder_);
  }

  void signal(int rank, int number) const { ::kill(processes_[static_cast<std::size_t>(rank)], number); }

  // Waits until all ranks have written a line with `text`.
  void wait_for(const std::string& text) const {
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
      for (int tries = 0; output(static_cast<int>(rank)).find(text) == std::string::npos; ++tries) {
        if (tries > 6000) throw std::runtime_error("rank " + std::to_string(rank) + " did not say " + text);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  }

  // Waits for a rank's end; false where it still runs long after it should have ended.
  bool ended(int rank) {
    const auto index = static_cast<std::size_t>(rank);
    for (int tries = 0; tries < 6000 && status_[index] == -1; ++tries) {
      int status = 0;
      if (::waitpid(processes_[index], &status, WNOHANG) == processes_[index]) status_[index] = status;
      if (status_[index] == -1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return status_[index] != -1;
  }
  // Exit code, or minus the signal that ended it; -1000 where it runs on.
  int exit_code(int rank) {
    if (!ended(rank)) return -1000;
    const int status = status_[static_cast<std::size_t>(rank)];
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  // What a rank wrote to stderr.
  std::string output(int rank) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / ("rank" + std::to_string(rank))).rdbuf();
    return text.str();
  }
  std::string all_output() const {
    std::string text;
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) text += output(static_cast<int>(rank));
    return text;
  }

 private:
  static std::filesystem::path make_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "ridgeline-ranks-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    return name;
  }

  void become_rank(int rank, int count, int port, const std::string& main, const std::string& scenario) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Not by freopen: it would write what this copy of the parent still holds in its buffers.
    const int own = ::open((folder_ / ("rank" + std::to_string(rank))).c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    const int nothing = ::open("/dev/null", O_WRONLY);
    if (own < 0 || nothing < 0 || ::dup2(own, STDERR_FILENO) < 0 || ::dup2(nothing, STDOUT_FILENO) < 0) _exit(99);
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("SCENARIO", scenario.c_str(), 1);
    setenv("SCENARIO_RANK", std::to_string(rank).c_str(), 1);
    setenv("SCENARIO_WORLD", std::to_string(count).c_str(), 1);
    setenv("SCENARIO_PORT", std::to_string(port).c_str(), 1);
    setenv("SCENARIO_FILE", port == 0 ? (folder_ / "store").c_str() : "", 1);
    const std::string filter = "--gtest_filter=" + main;
    execl("/proc/self/exe", "test", filter.c_str(), "--gtest_also_run_disabled_tests", nullptr);
    _exit(99);
  }

  std::filesystem::path folder_;
  std::vector<pid_t> processes_;
  std::vector<int> status_;  // of waitpid; -1: not ended
};

}  // namespace ridgeline::mesh
