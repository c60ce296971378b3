#include "report/history.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "report/page/page.h"

namespace ridgeline::report {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Quantity {
  const char* name;
  double (*of)(const StepMetrics&);
};

constexpr std::array<Quantity, RunHistory::kQuantities> kTable = {{
    {"loss", [](const StepMetrics& step) { return step.loss; }},
    {"validation_loss", [](const StepMetrics& step) { return step.validation_loss.value_or(kNone); }},
    {"grad_norm", [](const StepMetrics& step) { return step.grad_norm; }},
    {"lr", [](const StepMetrics& step) { return step.lr; }},
    {"step_seconds", [](const StepMetrics& step) { return step.step_seconds; }},
    {"tokens_per_second", [](const StepMetrics& step) { return step.tokens_per_second; }},
    {"tflops_per_device", [](const StepMetrics& step) { return step.tflops_per_device; }},
    {"mfu", [](const StepMetrics& step) { return step.mfu.value_or(kNone); }},
    {"peak_memory", [](const StepMetrics& step) { return static_cast<double>(step.peak_memory); }},
    {"loss_scale", [](const StepMetrics& step) { return step.loss_scale.value_or(kNone); }},
}};

}  // namespace

RunHistory::RunHistory(size_t most_rows) : most_rows_(most_rows) { RIDGELINE_ASSERT(most_rows >= 2); }

void RunHistory::Spread::add(const Spread& other) {
  if (other.count == 0) return;
  low = count == 0 ? other.low : std::min(low, other.low);
  high = count == 0 ? other.high : std::max(high, other.high);
  sum += other.sum;
  count += other.count;
}

void RunHistory::Row::add(const Row& later) {
  step = later.step;
  tokens = later.tokens;
  seconds = later.seconds;
  steps += later.steps;
  for (size_t i = 0; i < quantities.size(); ++i) quantities[i].add(later.quantities[i]);
}

void RunHistory::add(const StepMetrics& step) {
  if (!rows_.empty() && step.step <= rows_.back().step) {
    throw InputError("step {} stands after step {}: expected rising steps; were two runs written to one file?",
                     step.step, rows_.back().step);
  }
  if (std::isfinite(step.step_seconds)) seconds_ += step.step_seconds;
  skipped_ += step.skipped ? 1 : 0;
  not_finite_ += std::isfinite(step.loss) ? 0 : 1;
  Row row{.step = step.step, .tokens = step.tokens, .steps = 1, .seconds = seconds_, .quantities = {}};
  for (size_t i = 0; i < kTable.size(); ++i) {
    const double value = kTable[i].of(step);
    if (std::isfinite(value)) row.quantities[i] = {.sum = value, .low = value, .high = value, .count = 1};
  }
  if (!rows_.empty() && rows_.back().steps < steps_per_row_) {
    rows_.back().add(row);
    return;
  }
  if (rows_.size() == most_rows_) merge_pairs();
  if (!rows_.empty() && rows_.back().steps < steps_per_row_) {
    rows_.back().add(row);  // an odd row is left half full
  } else {
    rows_.push_back(row);
  }
}

void RunHistory::merge_pairs() {
  std::vector<Row> merged;
  for (size_t i = 0; i < rows_.size(); i += 2) {
    merged.push_back(rows_[i]);
    if (i + 1 < rows_.size()) merged.back().add(rows_[i + 1]);
  }
  rows_ = std::move(merged);
  steps_per_row_ *= 2;
}

nlohmann::json RunHistory::to_json() const {
  using nlohmann::json;
  json document = {{"steps_per_row", steps_per_row_}, {"skipped", skipped_}, {"not_finite", not_finite_}};
  for (const char* name : {"step", "tokens", "seconds", "steps"}) document[name] = json::array();
  for (const Row& row : rows_) {
    document["step"].push_back(row.step);
    document["tokens"].push_back(row.tokens);
    document["seconds"].push_back(rounded(row.seconds));
    document["steps"].push_back(row.steps);
  }
  for (size_t i = 0; i < kTable.size(); ++i) {
    const auto has_value = [&](const Row& row) { return row.quantities[i].count > 0; };
    if (std::none_of(rows_.begin(), rows_.end(), has_value)) continue;
    json mean = json::array(), low = json::array(), high = json::array();
    for (const Row& row : rows_) {
      const Spread& spread = row.quantities[i];
      const bool has = spread.count > 0;
      mean.push_back(has ? json(rounded(spread.sum / static_cast<double>(spread.count))) : json());
      low.push_back(has ? json(rounded(spread.low)) : json());
      high.push_back(has ? json(rounded(spread.high)) : json());
    }
    document[kTable[i].name] = {{"mean", mean}};
    if (steps_per_row_ == 1) continue;
    document[kTable[i].name]["low"] = low;
    document[kTable[i].name]["high"] = high;
  }
  return document;
}

}  // namespace ridgeline::report
