// RunSummary: what a run's metrics come to, and its held-out losses as a table.
//
//   SummaryBuilder builder;                       // 48 bytes a step
//   while (const auto step = reader.next()) builder.add(*step);
//   RunSummary summary = builder.finish();
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/metrics.h"

namespace ridgeline::report {

struct HeldOut {
  int64_t step = 0;
  int64_t tokens = 0;
  double training_loss = 0.0;  // of that step alone
  double loss = 0.0;
  double perplexity() const;
};

// Medians over the second half of the steps, when caches and clocks have settled. Nothing where no value is known.
struct Speed {
  int64_t first_step = 0;
  int64_t last_step = 0;
  std::optional<double> step_seconds;
  std::optional<double> tokens_per_second;
  std::optional<double> tflops_per_device;
  std::optional<double> mfu;
  std::optional<double> hfu;
};

struct RunSummary {
  int64_t steps = 0;     // finished ones, the last step's number
  int64_t tokens = 0;    // seen since the start
  double seconds = 0.0;  // of all recorded steps
  double loss = 0.0;     // of the last step
  int64_t skipped = 0;   // steps that an fp16 overflow left without an update
  int64_t peak_memory = 0;
  Speed speed;
  std::vector<HeldOut> held_out;
};

class SummaryBuilder {
 public:
  void add(const StepMetrics& step);
  RunSummary finish() const;  // after one step or more

 private:
  RunSummary summary_;  // all but `speed`
  std::vector<int64_t> steps_;
  std::vector<double> step_seconds_, tokens_per_second_, tflops_per_device_, mfu_, hfu_;  // nan: not known
};

// `metrics` as read_metrics gives them, one or more.
RunSummary summarise(std::span<const StepMetrics> metrics);

// Lines with their ends, at most `rows` of them spread over the run (the first, the last and the lowest are among
// them), each with a bar as long as its loss; empty where nothing was held out.
std::string held_out_table(std::span<const HeldOut> held_out, int64_t rows = 20);

}  // namespace ridgeline::report
