#include "report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"

namespace ridgeline::report {
namespace {

// Of the second half, without what is not finite; nothing where nothing is.
std::optional<double> settled_median(const std::vector<double>& all) {
  std::vector<double> values(all.begin() + static_cast<ptrdiff_t>(all.size() / 2), all.end());
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

// Which of `count` rows to show where `most` may be: evenly spread, with the first, the last and `also`.
std::set<size_t> chosen_rows(size_t count, size_t most, size_t also) {
  std::set<size_t> rows{also};
  for (size_t place = 0; place < std::min(count, most); ++place) {
    rows.insert(count <= most ? place : place * (count - 1) / (most - 1));
  }
  return rows;
}

}  // namespace

double HeldOut::perplexity() const { return std::exp(loss); }

void SummaryBuilder::add(const StepMetrics& step) {
  summary_.steps = step.step;
  summary_.tokens = step.tokens;
  summary_.loss = step.loss;
  if (std::isfinite(step.step_seconds)) summary_.seconds += step.step_seconds;
  summary_.peak_memory = std::max(summary_.peak_memory, step.peak_memory);
  summary_.skipped += step.skipped ? 1 : 0;
  if (step.validation_loss) {
    summary_.held_out.push_back({step.step, step.tokens, step.loss, *step.validation_loss});
  }
  steps_.push_back(step.step);
  step_seconds_.push_back(step.step_seconds);
  tokens_per_second_.push_back(step.tokens_per_second);
  tflops_per_device_.push_back(step.tflops_per_device);
  mfu_.push_back(step.mfu.value_or(NAN));
  hfu_.push_back(step.hfu.value_or(NAN));
}

RunSummary SummaryBuilder::finish() const {
  RIDGELINE_ASSERT(!steps_.empty());
  RunSummary summary = summary_;
  summary.speed = {.first_step = steps_[steps_.size() / 2],
                   .last_step = steps_.back(),
                   .step_seconds = settled_median(step_seconds_),
                   .tokens_per_second = settled_median(tokens_per_second_),
                   .tflops_per_device = settled_median(tflops_per_device_),
                   .mfu = settled_median(mfu_),
                   .hfu = settled_median(hfu_)};
  return summary;
}

RunSummary summarise(std::span<const StepMetrics> metrics) {
  SummaryBuilder builder;
  for (const StepMetrics& step : metrics) builder.add(step);
  return builder.finish();
}

std::string held_out_table(std::span<const HeldOut> held_out, int64_t rows) {
  RIDGELINE_ASSERT(rows >= 2);
  if (held_out.empty()) return "";
  constexpr double kBar = 36;
  const auto is_lower = [](const HeldOut& left, const HeldOut& right) {
    return std::isfinite(left.loss) && (!std::isfinite(right.loss) || left.loss < right.loss);
  };
  const auto lowest = std::min_element(held_out.begin(), held_out.end(), is_lower);
  double most = 0.0;
  for (const HeldOut& row : held_out) most = std::isfinite(row.loss) ? std::max(most, row.loss) : most;

  std::string text = fmt::format("{:>8} {:>9} {:>9} {:>11}\n", "step", "training", "held-out", "perplexity");
  const std::set<size_t> chosen =
      chosen_rows(held_out.size(), static_cast<size_t>(rows), static_cast<size_t>(lowest - held_out.begin()));
  for (const size_t index : chosen) {
    const HeldOut& row = held_out[index];
    const auto bar =
        most > 0.0 && row.loss > 0.0 ? static_cast<size_t>(std::lround(kBar * std::min(1.0, row.loss / most))) : 0;
    text += fmt::format("{:>8} {:>9.4f} {:>9.4f} {:>11.5g}", row.step, row.training_loss, row.loss, row.perplexity());
    if (bar > 0) text += "  " + std::string(bar, '#');
    text += "\n";
  }
  if (chosen.size() < held_out.size()) {
    text += fmt::format("{} of {} shown; the lowest is of step {}\n", chosen.size(), held_out.size(), lowest->step);
  }
  return text;
}

}  // namespace ridgeline::report
