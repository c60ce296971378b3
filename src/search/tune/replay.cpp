#include "search/tune/replay.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline::search {
namespace {

using simulate::Table;

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

class RowReader {
 public:
  RowReader(const Table& table, const spec::ModelSpec& model, int64_t devices, int64_t global_batch)
      : table_(table), model_(model), devices_(devices), global_batch_(global_batch) {
    for (const char* column : {"tensor", "pipeline", "micro_batch", "outcome", "step_seconds"}) {
      if (!table.has(column)) {
        throw InputError(
            "{}: no column '{}': expected a table of strategies and their outcomes, with the columns tensor, pipeline, "
            "micro_batch, outcome, step_seconds",
            table.file_name(), column);
      }
    }
    static const std::set<std::string> known = {"tensor",      "pipeline",     "data",       "virtual_pipeline",
                                                "micro_batch", "recompute",    "zero_stage", "sequence_parallel",
                                                "schedule",    "global_batch", "outcome",    "step_seconds",
                                                "memory_gib",  "devices",      "context",    "expert"};
    for (const std::string& column : table.columns()) {
      if (known.count(column) == 0) extra_.push_back(column);
    }
  }

  Point point(size_t row) {
    Point point;
    spec::Strategy& strategy = point.strategy;
    point.devices = count(row, "devices", devices_);
    strategy.tensor = count(row, "tensor", 1);
    strategy.pipeline = count(row, "pipeline", 1);
    strategy.context = count(row, "context", 1);
    strategy.expert = count(row, "expert", 1);
    strategy.micro_batch = count(row, "micro_batch", 1);
    strategy.global_batch = count(row, "global_batch", global_batch_);
    point.strategy.virtual_pipeline = count(row, "virtual_pipeline", 1);
    strategy.sequence_parallel = flag(row, "sequence_parallel");
    strategy.recompute = recompute(row);
    strategy.schedule = schedule(row);
    strategy.zero_stage = whole(row, "zero_stage", 0, 3);
    derive(row, strategy, point.devices);
    for (const std::string& column : extra_) point.extra[column] = table_.text(row, column);
    return point;
  }

  ReplayRow outcome(size_t row) const {
    ReplayRow result;
    const std::string text = table_.text(row, "outcome");
    try {
      result.outcome = text == "oom" ? Outcome::out_of_memory : parse_outcome(text);
    } catch (const InputError& error) {
      throw InputError("{}: column 'outcome': {}", table_.where(row), error.what());
    }
    result.peak_bytes = positive(row, "memory_gib").value_or(0) * kGib;
    if (result.outcome != Outcome::ok) return result;
    const std::optional<double> seconds = positive(row, "step_seconds");
    if (!seconds) refuse(row, "step_seconds", "the seconds of a step, for its outcome is ok");
    result.step_seconds = *seconds;
    return result;
  }

  bool selective_is_attention() const { return selective_is_attention_; }

 private:
  [[noreturn]] void refuse(size_t row, const std::string& column, const std::string& expected) const {
    throw InputError("{}: column '{}' = '{}': expected {}", table_.where(row), column,
                     table_.text(row, column).substr(0, 60), expected);
  }

  int64_t count(size_t row, const std::string& column, int64_t otherwise) const {
    if (!table_.has(column)) return otherwise;
    const std::optional<int64_t> value = table_.count(row, column);
    if (!value || *value > 1'000'000'000) refuse(row, column, "a whole number from 1 to 1e9");
    return *value;
  }

  int64_t whole(size_t row, const std::string& column, int64_t otherwise, int64_t most) const {
    if (!table_.has(column)) return otherwise;
    const std::optional<double> value = table_.number(row, column);
    if (!value || *value < 0 || *value > static_cast<double>(most) || *value != std::floor(*value)) {
      refuse(row, column, fmt::format("a whole number from 0 to {}", most));
    }
    return static_cast<int64_t>(*value);
  }

  bool flag(size_t row, const std::string& column) const {
    const std::string text = table_.text(row, column);
    if (text == "true" || text == "on" || text == "1") return true;
    if (!table_.has(column) || text == "false" || text == "off" || text == "0") return false;
    refuse(row, column, "0 or 1");
  }

  std::optional<double> positive(size_t row, const std::string& column) const {
    const std::optional<double> value = table_.number(row, column);
    if (value && (*value <= 0 || *value > 1e12)) refuse(row, column, "a number above 0 and at most 1e12");
    return value;
  }

  spec::Recompute recompute(size_t row) {
    const std::string text = table_.text(row, "recompute");
    if (!table_.has("recompute") || text == "none") return spec::Recompute::none;
    if (text == "full") return spec::Recompute::full;
    if (text == "attn_only") selective_is_attention_ = true;
    if (text == "selective" || text == "attn_only") return spec::Recompute::selective;
    refuse(row, "recompute", "none, selective, attn_only or full");
  }

  spec::ScheduleKind schedule(size_t row) const {
    const std::string text = table_.text(row, "schedule");
    if (!table_.has("schedule") || text == "1f1b") return spec::ScheduleKind::one_f_one_b;
    for (const auto kind :
         {spec::ScheduleKind::gpipe, spec::ScheduleKind::zero_bubble, spec::ScheduleKind::zero_bubble_v}) {
      if (text == to_string(kind)) return kind;
    }
    refuse(row, "schedule", "1f1b, gpipe, zero_bubble or zero_bubble_v");
  }

  void derive(size_t row, spec::Strategy& strategy, int64_t devices) const {
    // Other programs interleave also where the micro-batches do not divide by the stages.
    const int64_t chunks = std::exchange(strategy.virtual_pipeline, 1);
    try {
      spec::derive_data(strategy, model_, devices);
    } catch (const InputError& error) {
      throw InputError("{}: {}; is it a table of this model, {} devices and this global batch?", table_.where(row),
                       error.what(), devices);
    }
    if (model_.layers % (strategy.pipeline * chunks) != 0 && chunks > 1) {
      refuse(row, "virtual_pipeline",
             fmt::format("chunks of {} stages that {} layers divide into", strategy.pipeline, model_.layers));
    }
    strategy.virtual_pipeline = chunks;
    if (count(row, "data", strategy.data) != strategy.data) {
      refuse(row, "data", fmt::format("{}, which tensor, context and pipeline leave of {} devices", strategy.data, devices));
    }
  }

  const Table& table_;
  const spec::ModelSpec& model_;
  int64_t devices_, global_batch_;
  std::vector<std::string> extra_;
  bool selective_is_attention_ = false;
};

}  // namespace

Trial Replay::trial(size_t point, double limit_bytes) const {
  const ReplayRow& row = rows.at(point);
  Trial trial;
  trial.point = point;
  trial.outcome = row.outcome;
  trial.peak_bytes = row.outcome == Outcome::ok ? row.peak_bytes : 0;
  if (row.outcome == Outcome::ok) trial.costs = {row.step_seconds};
  if (row.outcome == Outcome::out_of_memory && limit_bytes > 0 && row.peak_bytes > limit_bytes) {
    trial.missing_bytes = row.peak_bytes - limit_bytes;
  }
  return trial;
}

Replay read_replay(const std::string& path, const spec::ModelSpec& model, int64_t devices, int64_t global_batch) {
  return replay_of(simulate::read_table(path), model, devices, global_batch);
}

Replay replay_of(const Table& table, const spec::ModelSpec& model, int64_t devices, int64_t global_batch) {
  RowReader reader(table, model, devices, global_batch);
  if (table.rows() == 0) throw InputError("{}: a header and no rows; expected a strategy a row", table.file_name());
  std::vector<Point> points;
  std::vector<ReplayRow> rows;
  for (size_t row = 0; row < table.rows(); ++row) {
    points.push_back(reader.point(row));
    rows.push_back(reader.outcome(row));
  }
  try {
    return Replay{PointSet(std::move(points)), std::move(rows), reader.selective_is_attention()};
  } catch (const InputError& error) {
    throw InputError("{}: {}", table.file_name(), error.what());
  }
}

}  // namespace ridgeline::search
