#include "study/interrupt.h"

#include <cerrno>
#include <cmath>
#include <ctime>
#include <initializer_list>

namespace ridgeline::study {

Interrupt::Interrupt() {
  sigemptyset(&watched_);
  for (const int number : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&watched_, number);
  sigprocmask(SIG_BLOCK, &watched_, &before_);
}

Interrupt::~Interrupt() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

bool Interrupt::wait(double seconds) {
  const double whole = std::floor(seconds);
  const timespec time{static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
  const int number = sigtimedwait(&watched_, nullptr, &time);
  if (number == SIGINT || number == SIGTERM) requested_ = true;
  return requested_;
}

}  // namespace ridgeline::study
