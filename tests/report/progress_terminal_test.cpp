// Progress and the log together on a terminal: a pseudo-terminal stands in for stderr.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "core/log.h"
#include "report/progress.h"

namespace ridgeline::report {
namespace {

class PseudoTerminal {
 public:
  PseudoTerminal() {
    controller_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (controller_ < 0 || ::grantpt(controller_) != 0 || ::unlockpt(controller_) != 0) return;
    const int terminal = ::open(::ptsname(controller_), O_RDWR | O_NOCTTY);
    if (terminal < 0) return;
    stderr_before_ = ::dup(STDERR_FILENO);
    ::dup2(terminal, STDERR_FILENO);
    ::close(terminal);
  }
  ~PseudoTerminal() { restore(); }
  bool works() const { return stderr_before_ >= 0; }
  // Gives stderr back and returns what was written to the terminal.
  std::string restore() {
    std::string text;
    if (stderr_before_ >= 0) {
      // What is written last is read last: the mark says that all has arrived.
      const std::string mark = "<end>";
      EXPECT_EQ(::write(STDERR_FILENO, mark.data(), mark.size()), static_cast<ssize_t>(mark.size()));
      char buffer[4096];
      while (text.find(mark) == text.npos) {
        const auto count = ::read(controller_, buffer, sizeof buffer);
        if (count <= 0) break;
        text.append(buffer, static_cast<size_t>(count));
      }
      ::dup2(stderr_before_, STDERR_FILENO);
      ::close(stderr_before_);
      stderr_before_ = -1;
      text.resize(text.find(mark));
    }
    if (controller_ >= 0) ::close(controller_);
    controller_ = -1;
    return text;
  }

 private:
  int controller_ = -1;
  int stderr_before_ = -1;
};

TEST(ProgressOnATerminal, LogLinesStandAboveTheLineAndTheLogIsGivenBack) {
  PseudoTerminal terminal;
  if (!terminal.works()) GTEST_SKIP() << "no pseudo-terminal can be opened here (a bare root without devpts)";
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("RIDGELINE_LOG");
  set_up_log();
  {
    Progress progress;
    ProgressState state;
    state.metrics.step = 1;
    state.total_steps = 2;
    progress.update(state);
    spdlog::info("saved a checkpoint");
  }
  spdlog::info("done");
  const auto text = terminal.restore();
  const auto drawn = text.find("\rstep 1/2");
  const auto erased = text.find("\r\x1b[K", drawn + 1);
  const auto logged = text.find("saved a checkpoint");
  const auto redrawn = text.find("\rstep 1/2", drawn + 1);
  const auto after = text.find("done");
  ASSERT_NE(after, std::string::npos) << text;
  EXPECT_LT(drawn, erased);
  EXPECT_LT(erased, logged);
  EXPECT_LT(logged, redrawn);
  EXPECT_LT(redrawn, after);
  EXPECT_EQ(text.find("saved a checkpoint", logged + 1), std::string::npos) << "printed twice";
}

}  // namespace
}  // namespace ridgeline::report
