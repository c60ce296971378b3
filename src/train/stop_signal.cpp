#include "train/stop_signal.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace ridgeline::train {
namespace {

volatile std::sig_atomic_t signals_seen = 0;
volatile std::sig_atomic_t trains = 0;
volatile std::sig_atomic_t tells = 0;

constexpr int kInterrupted = 3;

void end_before_training() {
  static constexpr std::string_view kWhy =
      "ridgeline: ended by a signal before the first step of this start; nothing is lost\n";
  if (tells != 0) [[maybe_unused]] const auto written = write(STDERR_FILENO, kWhy.data(), kWhy.size());
  _exit(kInterrupted);
}

void on_signal(int signal) {
  if (trains == 0) end_before_training();
  if (signals_seen > 0 && signal == SIGINT) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  signals_seen = signals_seen + 1;
}

}  // namespace

StopSignal::StopSignal(bool speaks) {
  signals_seen = 0;
  trains = 0;
  tells = speaks ? 1 : 0;
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) std::signal(signal, on_signal);
}

StopSignal::~StopSignal() {
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) std::signal(signal, SIG_DFL);
}

void StopSignal::training_begins() { trains = 1; }

bool StopSignal::requested() { return signals_seen > 0; }

}  // namespace ridgeline::train
