// check_tensorboard FOLDER: writes two event files there, of a run and of its resumption, as check_tensorboard.py
// expects.
#include "core/error.h"
#include "report/tensorboard.h"

int main(int count, char** arguments) {
  using namespace ridgeline::report;
  if (count != 2) return 2;
  try {
    EventFile first(arguments[1], 0);
    for (int64_t step = 1; step <= 8; ++step) {
      StepMetrics metrics;
      metrics.step = step;
      metrics.loss = 10.0 / static_cast<double>(step);
      metrics.tokens = step * 1000;
      metrics.mfu = 0.5;
      metrics.peak_memory = int64_t{3} << 30;
      first.step_metrics(metrics);
    }
    first.scalars(int64_t{1} << 40, {{"large/step", -1.5}});
    EventFile resumed(arguments[1], 5);
    for (int64_t step = 6; step <= 7; ++step) resumed.scalars(step, {{"train/loss", 100.0}, {"\u03bb", 0.25}});
  } catch (const ridgeline::Error& error) {
    return error.exit_code();
  }
  return 0;
}
