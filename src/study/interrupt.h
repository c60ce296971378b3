// Interrupt: SIGINT and SIGTERM as something that a loop asks for, so that a study is left in order.
#pragma once

#include <csignal>

namespace ridgeline::study {

// While one lives these signals, and SIGCHLD, do not interrupt the process; one at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Waits until a child ends, a signal comes or the time is over. Whether the process was asked to stop, now or before.
  bool wait(double seconds);

 private:
  sigset_t watched_;
  sigset_t before_;
  bool requested_ = false;
};

}  // namespace ridgeline::study
