#include "train/stop_signal.h"

#include <csignal>

namespace ridgeline::train {
namespace {

volatile std::sig_atomic_t signals_seen = 0;

void on_signal(int signal) {
  if (signals_seen > 0 && signal == SIGINT) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  signals_seen = signals_seen + 1;
}

}  // namespace

StopSignal::StopSignal() {
  signals_seen = 0;
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) std::signal(signal, on_signal);
}

StopSignal::~StopSignal() {
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) std::signal(signal, SIG_DFL);
}

bool StopSignal::requested() { return signals_seen > 0; }

}  // namespace ridgeline::train
