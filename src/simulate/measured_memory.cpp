#include "simulate/measured_memory.h"

#include <algorithm>

#include "core/error.h"
#include "simulate/evaluator.h"

namespace ridgeline::simulate {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

// The model and plan of a row; throws InputError where it lacks something.
struct Run {
  spec::ModelSpec model;
  spec::Strategy strategy;
  int64_t stage = 0;
};

int64_t need(const Table& table, size_t row, const char* column) {
  const auto value = table.count(row, column);
  if (!value) throw InputError("{} is not known", column);
  return *value;
}

Run run_of(const Table& table, size_t row) {
  Run run;
  run.model.layers = need(table, row, "layers");
  run.model.hidden = need(table, row, "hidden");
  run.model.sequence = need(table, row, "seq_len");
  run.model.heads = need(table, row, "heads");
  run.model.vocabulary = need(table, row, "vocab");
  run.model.dropout = run.model.attention_dropout = table.number(row, "dropout").value_or(0);
  run.model.embedding_norm = table.text(row, "embedding_norm") == "yes";
  spec::Strategy& strategy = run.strategy;
  strategy.tensor = need(table, row, "tp");
  strategy.pipeline = need(table, row, "pp");
  strategy.micro_batch = need(table, row, "micro_batch");
  const int64_t data = need(table, row, "dp");
  strategy.zero_stage = table.text(row, "zero_stage").starts_with("0") ? 0 : 1;
  if (table.text(row, "recompute") != "full") throw InputError("recompute is not 'full'");
  strategy.recompute = spec::Recompute::full;
  strategy.global_batch = 4 * strategy.pipeline * data * strategy.micro_batch;  // many micro-batches: 1F1B's full load
  spec::derive_data(strategy, run.model, strategy.tensor * strategy.pipeline * data);
  run.stage = static_cast<int64_t>(table.number(row, "pipeline_stage").value_or(-1));
  if (run.stage < 0 || run.stage >= strategy.pipeline) throw InputError("pipeline_stage is not known");
  return run;
}

void predict(MeasuredMemory& measured, const Run& run, const spec::Machine& machine) {
  const cost::Recipe recipe = cost::recipe(machine.stack.program);
  MemoryModel model(run.model, machine, spec::Precision::bf16, recipe);
  const std::vector<int64_t> layers = cost::with_stages(run.strategy, run.model, recipe).stage_layers;
  const int64_t count = layers.empty() ? run.model.layers / run.strategy.pipeline : layers[run.stage];
  const StageMemory memory = model.stage(run.strategy, run.stage, count);
  const double reserve = model.reserve(run.strategy);
  const bool last = run.stage == run.strategy.pipeline - 1;
  const double parameters = model.parameters(run.strategy, count, run.stage == 0, last);
  measured.predicted_allocated =
      model.statics(run.strategy, parameters, model.experts(run.strategy, count)).total();
  measured.predicted_peak = memory.total() - reserve;
  measured.predicted_low = memory.low - reserve;
  measured.predicted_high = memory.high - reserve;
}

Accuracy accuracy_of_rows(const std::string& source, const std::vector<const MeasuredMemory*>& rows) {
  std::vector<double> errors;
  for (const MeasuredMemory* row : rows) {
    if (row->why_not.empty()) errors.push_back(row->error());
  }
  return accuracy_of(source, static_cast<int64_t>(rows.size()), errors);
}

}  // namespace

bool is_memory_table(const Table& table) { return table.has("pipeline_stage") && table.has("max_allocated_MiB"); }

std::vector<MeasuredMemory> validate_memory(const Table& table, const std::string& machine) {
  std::vector<MeasuredMemory> rows;
  for (size_t row = 0; row < table.rows(); ++row) {
    MeasuredMemory measured;
    measured.source = table.text(row, "source");
    measured.label = fmt::format("{} {} DP {} stage {}", table.where(row), table.text(row, "model"),
                                 table.text(row, "dp"), table.text(row, "pipeline_stage"));
    measured.allocated = table.number(row, "allocated_MiB").value_or(0) * kMib;
    measured.peak = table.number(row, "max_allocated_MiB").value_or(0) * kMib;
    measured.reserved = table.number(row, "reserved_MiB").value_or(0) * kMib;
    const std::string name = machine.empty() ? table.text(row, "machine") : machine;
    if (name.empty()) measured.why_not = "no column 'machine' names the machine's file (use --machine)";
    if (measured.peak <= 0) measured.why_not = "max_allocated_MiB is not known";
    if (measured.why_not.empty()) {
      const spec::Machine loaded = spec::load_machine(name);
      try {
        predict(measured, run_of(table, row), loaded);
      } catch (const InputError& error) {
        measured.why_not = error.what();
      }
    }
    rows.push_back(std::move(measured));
  }
  return rows;
}

std::vector<Accuracy> accuracies(const std::vector<MeasuredMemory>& rows) {
  std::vector<std::string> sources;
  std::vector<Accuracy> result;
  std::vector<const MeasuredMemory*> all;
  for (const MeasuredMemory& row : rows) {
    all.push_back(&row);
    if (std::find(sources.begin(), sources.end(), row.source) == sources.end()) sources.push_back(row.source);
  }
  for (const std::string& source : sources) {
    std::vector<const MeasuredMemory*> of_source;
    for (const MeasuredMemory* row : all) {
      if (row->source == source) of_source.push_back(row);
    }
    result.push_back(accuracy_of_rows(source, of_source));
  }
  result.push_back(accuracy_of_rows("all", all));
  return result;
}

}  // namespace ridgeline::simulate
