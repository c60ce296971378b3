#include "report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"

namespace ridgeline::report {
namespace {

std::optional<double> median(std::vector<double> values) {
  values.erase(std::remove_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); }),
               values.end());
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Median of get(step), which may be empty.
template <typename Get>
std::optional<double> median_of(std::span<const StepMetrics> metrics, Get get) {
  std::vector<double> values;
  for (const StepMetrics& step : metrics) {
    if (const std::optional<double> value = get(step)) values.push_back(*value);
  }
  return median(std::move(values));
}

Speed settled_speed(std::span<const StepMetrics> metrics) {
  const auto settled = metrics.subspan(metrics.size() / 2);
  Speed speed;
  speed.first_step = settled.front().step;
  speed.last_step = settled.back().step;
  speed.step_seconds = median_of(settled, [](const auto& step) { return std::optional(step.step_seconds); });
  speed.tokens_per_second = median_of(settled, [](const auto& step) { return std::optional(step.tokens_per_second); });
  speed.tflops_per_device = median_of(settled, [](const auto& step) { return std::optional(step.tflops_per_device); });
  speed.mfu = median_of(settled, [](const auto& step) { return step.mfu; });
  speed.hfu = median_of(settled, [](const auto& step) { return step.hfu; });
  return speed;
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

RunSummary summarise(std::span<const StepMetrics> metrics) {
  RIDGELINE_ASSERT(!metrics.empty());
  RunSummary summary;
  summary.steps = metrics.back().step;
  summary.tokens = metrics.back().tokens;
  summary.loss = metrics.back().loss;
  summary.speed = settled_speed(metrics);
  for (const StepMetrics& step : metrics) {
    if (std::isfinite(step.step_seconds)) summary.seconds += step.step_seconds;
    summary.peak_memory = std::max(summary.peak_memory, step.peak_memory);
    summary.skipped += step.skipped ? 1 : 0;
    if (step.validation_loss) {
      summary.held_out.push_back({step.step, step.tokens, step.loss, *step.validation_loss});
    }
  }
  return summary;
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
