#include "simulate/measured_scaling.h"

#include <algorithm>

#include "core/error.h"
#include "simulate/evaluator.h"

namespace ridgeline::simulate {
namespace {

int64_t need(const Table& table, size_t row, const char* column) {
  if (const auto value = table.count(row, column)) return *value;
  throw InputError("{} is not known", column);
}

spec::ModelSpec model_of(const Table& table, size_t row) {
  spec::ModelSpec model;
  model.layers = need(table, row, "layers");
  model.hidden = need(table, row, "hidden");
  model.heads = need(table, row, "heads");
  model.sequence = need(table, row, "seq_len");
  model.vocabulary = need(table, row, "vocab");
  model.dropout = model.attention_dropout = table.number(row, "dropout").value_or(0);
  spec::validate(model);
  return model;
}

spec::Strategy strategy_of(const Table& table, size_t row) {
  spec::Strategy strategy;
  strategy.tensor = need(table, row, "tp");
  strategy.pipeline = need(table, row, "pp");
  strategy.micro_batch = need(table, row, "micro_batch");
  strategy.zero_stage = static_cast<int64_t>(table.number(row, "zero_stage").value_or(0));
  if (table.text(row, "recompute") != "full") throw InputError("recompute is not 'full'");
  strategy.recompute = spec::Recompute::full;
  return strategy;
}

// Samples a second of one device.
double device_rate(Evaluator& evaluator, spec::Strategy strategy, int64_t devices, int64_t batch) {
  strategy.global_batch = batch;
  spec::derive_data(strategy, evaluator.model(), devices);
  const Prediction prediction = evaluator.predict(cost::with_stages(strategy, evaluator.model(), evaluator.recipe()));
  return static_cast<double>(batch) / (prediction.step_seconds * static_cast<double>(devices));
}

double predicted_efficiency(const Table& table, size_t row, const spec::Machine& machine) {
  Evaluator evaluator(model_of(table, row), machine, cost::recipe(machine.stack.program), spec::Precision::bf16);
  const spec::Strategy strategy = strategy_of(table, row);
  const double base =
      device_rate(evaluator, strategy, need(table, row, "base_gpu_count"), need(table, row, "base_batch"));
  return device_rate(evaluator, strategy, need(table, row, "gpu_count"), need(table, row, "global_batch")) / base;
}

}  // namespace

bool is_scaling_table(const Table& table) { return table.has("base_gpu_count") && table.has("efficiency"); }

std::vector<MeasuredScaling> validate_scaling(const Table& table, const std::string& machine) {
  std::vector<MeasuredScaling> rows;
  for (size_t row = 0; row < table.rows(); ++row) {
    MeasuredScaling measured;
    measured.source = table.text(row, "source");
    measured.label = fmt::format("{} {} {} to {}", table.where(row), table.text(row, "model"),
                                 table.text(row, "base_gpu_count"), table.text(row, "gpu_count"));
    measured.efficiency = table.number(row, "efficiency").value_or(0);
    const std::string name = machine.empty() ? table.text(row, "machine") : machine;
    if (name.empty()) measured.why_not = "no column 'machine' names the machine's file (use --machine)";
    if (measured.efficiency <= 0) measured.why_not = "efficiency is not known";
    if (measured.why_not.empty()) {
      const spec::Machine loaded = spec::load_machine(name);
      try {
        measured.predicted = predicted_efficiency(table, row, loaded);
      } catch (const InputError& error) {
        measured.why_not = error.what();
      }
    }
    rows.push_back(std::move(measured));
  }
  return rows;
}

std::vector<Accuracy> accuracies(const std::vector<MeasuredScaling>& rows) {
  std::vector<std::string> sources;
  for (const MeasuredScaling& row : rows) {
    if (std::find(sources.begin(), sources.end(), row.source) == sources.end()) sources.push_back(row.source);
  }
  std::vector<Accuracy> result;
  const auto add = [&](const std::string& name, bool all) {
    std::vector<double> errors;
    int64_t count = 0;
    for (const MeasuredScaling& row : rows) {
      if (!all && row.source != name) continue;
      ++count;
      if (row.why_not.empty()) errors.push_back(row.error());
    }
    result.push_back(accuracy_of(name, count, errors));
  };
  for (const std::string& source : sources) add(source, false);
  add("all", true);
  return result;
}

}  // namespace ridgeline::simulate
