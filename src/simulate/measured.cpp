#include "simulate/measured.h"

#include "core/error.h"
#include "simulate/measured_rows.h"

namespace ridgeline::simulate {

void refuse(MeasuredRun& run, const std::string& why_not) {
  if (run.why_not.empty()) run.why_not = why_not;
}

void need(MeasuredRun& run, const std::optional<int64_t>& value, int64_t& target, const std::string& column) {
  if (value) {
    target = *value;
  } else {
    refuse(run, fmt::format("{} is not known", column));
  }
}

void assume(MeasuredRun& run, const std::string& what) { run.assumed += (run.assumed.empty() ? "" : ", ") + what; }

void settle(MeasuredRun& run) {
  if (!run.why_not.empty()) return;
  if (run.step_seconds <= 0) {
    run.why_not = kTimeNotKnown;
    return;
  }
  try {
    spec::Strategy strategy = run.strategy;
    spec::validate(run.model);
    spec::derive_data(strategy, run.model, run.devices);
    run.strategy = strategy;
  } catch (const InputError& error) {
    run.why_not = error.what();
  }
}

std::vector<MeasuredRun> measured_runs(const Table& table, const MeasuredOptions& options) {
  if (auto runs = foreign_rows(table)) return *runs;
  if (table.has("source") && table.has("gpu_count") && table.has("global_batch")) return published_rows(table, options);
  throw InputError(
      "{}: this table's columns are not known: expected those of validation/throughput.csv (source, system, gpu, "
      "gpu_count, ..., global_batch, ..., iteration_s)",
      table.file_name());
}

std::string why_not(const MeasuredRun& run, const spec::Machine& machine) {
  if (!run.why_not.empty() || !run.fp8 || machine.device.peak_fp8_tflops > 0) return run.why_not;
  return fmt::format("precision fp8: machine '{}' has no device.peak_fp8_tflops", machine.name);
}

cost::Recipe recipe_of(const MeasuredRun& run, const spec::Machine& machine) {
  cost::Recipe recipe = cost::recipe(machine.stack.program);
  if (run.knows_attention) recipe.fused_attention = run.fused_attention;
  recipe.fp8_products = run.fp8;
  return recipe;
}

}  // namespace ridgeline::simulate
