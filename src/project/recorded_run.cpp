#include "project/recorded_run.h"

#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "cost/flops.h"
#include "report/metrics.h"
#include "spec/config.h"

namespace ridgeline::project {
namespace {

using report::StepMetrics;

constexpr double kWholeDevices = 1e-3;  // of one device, by which FLOPs over rate may miss a whole number

struct Mean {
  double sum = 0;
  int64_t count = 0;
  void add(const std::optional<double>& value) {
    if (!value) return;
    sum += *value;
    ++count;
  }
  std::optional<double> value() const {
    return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
  }
};

std::string where_of(const std::string& path, const StepMetrics& metrics) {
  return fmt::format("{}: step {}", path, metrics.step);
}

void check_lines(const std::string& path, const std::vector<StepMetrics>& all) {
  if (all.empty()) throw InputError("{}: no step is finished yet; expected some tens of steps", path);
  for (size_t i = 0; i < all.size(); ++i) {
    const StepMetrics& line = all[i];
    if (line.step < 1 || line.tokens < 1) {
      throw InputError("{}: line {} has step {} and {} tokens: expected both from 1 on; the file is damaged", path,
                       i + 1, line.step, line.tokens);
    }
    if (!std::isfinite(line.step_seconds) || line.step_seconds <= 0) {
      throw InputError("{}: step_seconds = {}: expected a positive number; the file is damaged", where_of(path, line),
                       line.step_seconds);
    }
    for (const auto& extra : {line.start_seconds, line.evaluation_seconds, line.save_seconds, line.pause_seconds}) {
      if (!extra || (std::isfinite(*extra) && *extra >= 0)) continue;
      throw InputError("{}: a duration of {} s: expected 0 or more; the file is damaged", where_of(path, line), *extra);
    }
    if (i > 0 && line.step <= all[i - 1].step) {
      throw InputError("{}: step {} follows step {}: expected ascending steps; were two runs written to one file?",
                       path, line.step, all[i - 1].step);
    }
  }
}

// From this line on batch and devices are those of the last one.
size_t first_of_layout(const std::vector<StepMetrics>& all) {
  const auto work = [&](size_t i) { return all[i].step_seconds * all[i].tflops_per_device; };
  const auto tokens = [&](size_t i) {
    return static_cast<double>(all[i].tokens - all[i - 1].tokens) / static_cast<double>(all[i].step - all[i - 1].step);
  };
  size_t first = all.size() - 1;
  if (first == 0) return 0;
  const double last_work = work(first), last_tokens = tokens(first);
  const auto is_same = [](double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); };
  while (first > 1 && is_same(work(first - 1), last_work) && is_same(tokens(first - 1), last_tokens)) --first;
  return first == 1 && is_same(work(0), last_work) ? 0 : first;
}

int64_t devices_of(const std::string& path, const spec::TrainSpec& spec, const StepMetrics& last) {
  const double devices =
      cost::step_model_flops(spec.model, spec.strategy) / (last.step_seconds * last.tflops_per_device * 1e12);
  const double whole = std::round(devices);
  if (std::isfinite(devices) && whole >= 1 && whole < 1e9 && std::abs(devices - whole) < kWholeDevices * whole) {
    return static_cast<int64_t>(whole);
  }
  throw InputError(
      "{}: {:.4g} TFLOP/s a device in {:.4g} s are not a step of the model and batch of config.toml on any "
      "whole number of devices; the two files are not of one run",
      where_of(path, last), last.tflops_per_device, last.step_seconds);
}

std::string metrics_path(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path given(path);
  return std::filesystem::is_directory(given, ignored) ? (given / "metrics.jsonl").string() : path;
}

spec::TrainSpec read_config(const std::string& metrics) {
  const std::string config = (std::filesystem::path(metrics).parent_path() / "config.toml").string();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(config, ignored)) {
    throw InputError("{}: no config.toml beside it: expected the folder of a run of `ridgeline train`", metrics);
  }
  return spec::load_train_spec(config, {}).spec;
}

}  // namespace

RecordedRun read_recorded_run(const std::string& path) {
  RecordedRun run;
  run.path = metrics_path(path);
  const std::vector<StepMetrics> all = report::read_metrics(run.path);
  check_lines(run.path, all);
  run.spec = read_config(run.path);
  run.finished_steps = all.back().step;
  run.devices = devices_of(run.path, run.spec, all.back());
  spec::derive_data(run.spec.strategy, run.spec.model, run.devices);
  Mean starts, evaluations, saves;
  double pauses = 0;
  const size_t first = first_of_layout(all);
  for (size_t i = first; i < all.size(); ++i) {
    const StepMetrics& line = all[i];
    run.step_seconds.push_back(line.step_seconds);
    starts.add(line.start_seconds);
    evaluations.add(line.evaluation_seconds);
    saves.add(line.save_seconds);
    if (i == first || !line.pause_seconds) continue;
    pauses +=
        std::max(0.0, *line.pause_seconds - line.save_seconds.value_or(0) - all[i - 1].evaluation_seconds.value_or(0));
  }
  run.start_seconds = starts.value();
  run.evaluation_seconds = evaluations.value();
  run.save_seconds = saves.value();
  run.pause_seconds = pauses / static_cast<double>(run.step_seconds.size());
  return run;
}

void require_same_work(const std::vector<RecordedRun>& runs) {
  const auto strip = [](spec::TrainSpec spec) {  // what does not change a step's work
    spec.data = {};
    spec.optimizer = {};
    spec.evaluation = {};
    spec.checkpoint = {};
    spec.training = {};
    spec.model_from.clear();
    return spec::to_toml(spec);
  };
  for (size_t i = 1; i < runs.size(); ++i) {
    const RecordedRun& one = runs.front();
    const RecordedRun& other = runs[i];
    if (one.devices != other.devices) {
      throw InputError("{} ran on {} devices, {} on {}: these runs do not belong together; project each by itself",
                       one.path, one.devices, other.path, other.devices);
    }
    const std::string first = strip(one.spec), second = strip(other.spec);
    if (first == second) continue;
    // The first line that differs names the key.
    const auto differs = std::mismatch(first.begin(), first.end(), second.begin(), second.end());
    const auto line = [](const std::string& text, std::string::const_iterator at) {
      const size_t place = static_cast<size_t>(at - text.begin());
      const size_t begin = place == 0 ? 0 : text.rfind('\n', place - 1) + 1;
      return text.substr(begin, text.find('\n', place) - begin);
    };
    throw InputError("{} has '{}', {} has '{}': these runs do not belong together; project each by itself", one.path,
                     line(first, differs.first), other.path, line(second, differs.second));
  }
}

}  // namespace ridgeline::project
