// Progress: how far a run is, on stderr.
//
//   Progress progress;                      // live line on a terminal, plain lines in a pipe or a file
//   for (...) { ...; progress.update({metrics, total_steps}); }
//   progress.finish();                      // leaves the last state as an ordinary line
//
// On a terminal one line is redrawn in place at most ten times a second, cut to the terminal's width: what matters less
// is left out first. While a Progress lives, lines of the log (core/log.h) are printed above it: the line is erased for
// them and drawn again. In a pipe each update is an ordinary line, without colour or control characters. Methods may be
// called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "report/metrics.h"

namespace ridgeline::report {

struct ProgressState {
  StepMetrics metrics;
  int64_t total_steps = 0;
  std::optional<double> seconds_left;  // none: from the steps left and a running mean of their time
};

// One line of at most `width` characters: step/total, loss, validation loss, tokens/s, TFLOP/s a device, MFU, memory
// and time left. Validation loss is the newest that an earlier state had, where this one has none.
std::string progress_text(const ProgressState& state, std::optional<double> validation_loss, int width);

class Progress {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  enum class Style { live, plain };

  // stderr, live where it is a terminal that can redraw a line (TERM is not "dumb"). Takes over the log's output.
  Progress();
  // For tests and other outputs; leaves the log alone.
  Progress(std::FILE* out, Style style, int width, Clock clock);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // finishes

  void update(const ProgressState& state);
  // Prints what `print` writes above the live line.
  void print_above(const std::function<void()>& print);
  void finish();

 private:
  class LogSink;
  void draw();
  void erase();

  std::FILE* out_;
  Style style_;
  int width_;
  Clock clock_;
  std::recursive_mutex mutex_;             // `print` may log
  std::optional<double> validation_loss_;  // the newest; stays on the live line
  std::optional<double> step_seconds_;     // running mean
  std::string text_;                       // of the newest state; empty before the first and after finish
  bool drawn_ = false;
  std::optional<std::chrono::steady_clock::time_point> last_draw_;
  std::shared_ptr<LogSink> log_sink_;
};

}  // namespace ridgeline::report
