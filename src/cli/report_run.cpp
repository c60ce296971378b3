#include "cli/report_run.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "cost/flops.h"
#include "spec/config.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

json number(double value) { return std::isfinite(value) ? json(value) : json(); }
json number(const std::optional<double>& value) { return value ? number(*value) : json(); }

// Says every other second how far a long file is read.
class ReadingProgress {
 public:
  ReadingProgress(const std::string& path, const report::MetricsReader& reader) : path_(path), reader_(reader) {}
  void step() {
    if (++steps_ % 4096 != 0) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - said_ < std::chrono::seconds(2)) return;
    said_ = now;
    spdlog::info("{}: {:.0f} % read", path_, 100 * reader_.share());
  }

 private:
  const std::string& path_;
  const report::MetricsReader& reader_;
  int64_t steps_ = 0;
  std::chrono::steady_clock::time_point said_ = std::chrono::steady_clock::now();
};

// A run's files do not say how many ranks it had, but its rates do: model FLOPs of a step, over what a device computed.
int64_t ranks_of(const spec::TrainSpec& train, const report::StepMetrics& last) {
  const double flops_per_device = last.tflops_per_device * 1e12 * last.step_seconds;
  if (!(flops_per_device > 0)) return 0;
  const double ranks = cost::step_model_flops(train.model, train.strategy) / flops_per_device;
  return ranks >= 0.5 && ranks < 1e7 ? std::llround(ranks) : 0;
}

void read_config(const std::string& metrics_path, const report::StepMetrics& last, ReportedRun& run) {
  const std::string path = (fs::path(metrics_path).parent_path() / "config.toml").string();
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    run.config_note = "There is no config.toml beside its metrics.jsonl.";
    return;
  }
  try {
    spec::TrainSpec train = spec::load_train_spec(path).spec;
    const int64_t ranks = ranks_of(train, last);
    if (ranks == 0)
      throw InputError("{}: its metrics have no rate from which the number of its ranks would follow", path);
    spec::derive_data(train.strategy, train.model, ranks);
    run.config = train;
  } catch (const InputError& error) {
    run.config_note = error.what();
    spdlog::warn("{}", error.what());
  }
}

}  // namespace

ReportedRun read_run(const std::string& name, const std::string& metrics_path, size_t most_rows) {
  ReportedRun run;
  run.name = name;
  report::RunHistory history(most_rows);
  report::SummaryBuilder builder;
  report::MetricsReader reader(metrics_path);
  ReadingProgress progress(metrics_path, reader);
  std::optional<report::StepMetrics> last;
  while (const auto step = reader.next()) {
    try {
      history.add(*step);
    } catch (const InputError& error) {
      throw InputError("{}:{}: {}", metrics_path, reader.line(), error.what());
    }
    builder.add(*step);
    last = step;
    progress.step();
  }
  if (!last) throw InputError("{}: no step is finished yet; expected a line of metrics.jsonl", name);
  run.summary = builder.finish();
  run.curves = history.to_json();
  read_config(metrics_path, *last, run);
  return run;
}

json summary_json(const std::string& name, const report::RunSummary& summary) {
  json held_out = json::array();
  for (const report::HeldOut& row : summary.held_out) {
    held_out.push_back({{"step", row.step},
                        {"tokens", row.tokens},
                        {"loss", number(row.training_loss)},
                        {"validation_loss", number(row.loss)},
                        {"perplexity", number(row.perplexity())}});
  }
  return {{"run", name},
          {"steps", summary.steps},
          {"tokens", summary.tokens},
          {"seconds", summary.seconds},
          {"loss", number(summary.loss)},
          {"skipped", summary.skipped},
          {"peak_memory", summary.peak_memory},
          {"median",
           {{"first_step", summary.speed.first_step},
            {"last_step", summary.speed.last_step},
            {"step_seconds", number(summary.speed.step_seconds)},
            {"tokens_per_second", number(summary.speed.tokens_per_second)},
            {"tflops_per_device", number(summary.speed.tflops_per_device)},
            {"mfu", number(summary.speed.mfu)},
            {"hfu", number(summary.speed.hfu)}}},
          {"held_out", held_out}};
}

}  // namespace ridgeline::cli
