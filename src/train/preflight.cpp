#include "train/preflight.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "core/error.h"
#include "core/text.h"
#include "cost/memory.h"
#include "spec/parameters.h"

namespace ridgeline::train {
namespace {

// Master and two moments in fp32 for each parameter.
constexpr double kCheckpointBytesPerParameter = 12.0;

// "table.key" -> text of the value, for the flat TOML that spec::to_toml writes.
std::map<std::string, std::string> values_by_key(const std::string& toml) {
  std::map<std::string, std::string> values;
  std::istringstream lines(toml);
  std::string table;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find('=');
    if (line[0] == '[') {
      table = line.substr(1, line.find(']') - 1);
    } else if (equals != std::string::npos) {
      const std::string key = line.substr(0, line.find_last_not_of(" \t", equals - 1) + 1);
      values[table + "." + key] = line.substr(std::min(line.size(), line.find_first_not_of(" \t", equals + 1)));
    }
  }
  return values;
}

}  // namespace

void check_memory(const spec::TrainSpec& spec, int64_t bytes_of_rank, bool on_host) {
  const auto [stage, memory] = cost::fullest_device(spec.model, spec.strategy, spec.precision.compute);
  const int64_t offloaded = on_host ? memory.host : 0, kept = memory.total() + offloaded;
  if (kept <= bytes_of_rank) return;
  const auto bytes = [](int64_t count) { return format_bytes(static_cast<double>(count)); };
  throw Failure(
      "this does not fit: a rank of stage {} keeps {} (weights {}, gradients {}, optimizer {}, activations {}, messages "
      "{}, buffers {}) and has {}. Use more tensor or pipeline ranks, a higher strategy.zero_stage, a smaller "
      "strategy.micro_batch or strategy.recompute; `ridgeline plan` lists strategies that fit",
      stage, bytes(kept), bytes(memory.weights), bytes(memory.gradients), bytes(memory.optimizer + offloaded),
      bytes(memory.activations), bytes(memory.messages), bytes(memory.buffers), bytes(bytes_of_rank));
}

void check_before_start(const spec::TrainSpec& spec, const data::SampleSource& source) {
  if (spec.evaluation.every > 0) source.require_validation(spec.evaluation.samples);
  const std::filesystem::path run(spec.training.run);
  std::error_code error;
  std::filesystem::create_directories(run, error);
  if (error || access(run.c_str(), W_OK) != 0) {
    throw InputError("training.run = \"{}\": cannot write there{}; choose a folder that you may write to",
                     spec.training.run, error ? " (" + error.message() + ")" : "");
  }
  if (spec.checkpoint.every == 0 && !spec.checkpoint.at_end) return;
  const double needed = kCheckpointBytesPerParameter * static_cast<double>(spec::parameter_count(spec.model));
  const auto space = std::filesystem::space(run, error);
  if (!error && static_cast<double>(space.available) < needed) {
    throw Failure(
        "{}: a checkpoint of this model takes {}, and only {} are free; free space, or choose another folder by "
        "training.run",
        spec.training.run, format_bytes(needed), format_bytes(static_cast<double>(space.available)));
  }
}

std::vector<std::string> changed_keys(const std::string& before, const std::string& now) {
  const auto old_values = values_by_key(before);
  std::vector<std::string> changes;
  for (const auto& [key, value] : values_by_key(now)) {
    const auto old_value = old_values.find(key);
    if (old_value == old_values.end()) {
      changes.push_back(fmt::format("{} = {} (not set before)", key, value));
    } else if (old_value->second != value) {
      changes.push_back(fmt::format("{} = {} (was {})", key, value, old_value->second));
    }
  }
  return changes;
}

}  // namespace ridgeline::train
