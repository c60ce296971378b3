// The slower half of Evaluator: one plan in depth, by stage, by part and action by action.
#include "cost/kernels.h"
#include "cost/stages.h"
#include "cost/step_schedule.h"
#include "schedule/actions.h"
#include "simulate/evaluator.h"
#include "simulate/kernel_time.h"
#include "spec/parameters.h"

namespace ridgeline::simulate {
namespace {

double to_double(int64_t value) { return static_cast<double>(value); }

}  // namespace

std::vector<StageReport> Evaluator::stages(const spec::Strategy& strategy) {
  const std::vector<int64_t> layers = stage_layers(strategy);
  const UnitTimes& units = unit_times(strategy);
  std::vector<StageReport> reports;
  for (int64_t stage = 0; stage < strategy.pipeline; ++stage) {
    StageReport report;
    report.layers = layers[stage];
    report.times = stage_times(units, strategy, stage, layers[stage]);
    report.memory = memory_.stage(strategy, stage, layers[stage]);
    report.parameters = memory_.parameters(strategy, layers[stage], stage == 0, stage == strategy.head_stage());
    reports.push_back(report);
  }
  return reports;
}

std::vector<PartReport> Evaluator::parts(const spec::Strategy& strategy) {
  std::vector<PartReport> reports;
  const auto report_of = [&reports](const std::string& name) -> PartReport& {
    for (PartReport& report : reports) {
      if (report.name == name) return report;
    }
    reports.push_back({});
    reports.back().name = name;
    return reports.back();
  };
  for (const int64_t unit : {spec::embedding_unit(), spec::layer_unit(0), spec::head_unit(model_)}) {
    const cost::UnitWork work =
        cost::unit_kernels(model_, strategy, memory_.shares(strategy), compute_, recipe_, unit);
    const auto seconds = [this](const cost::Kernel& kernel) { return kernel_seconds(machine_, compute_, kernel); };
    for (const cost::Kernel& kernel : work.forward.kernels) report_of(kernel.part).forward += seconds(kernel);
    for (const cost::Kernel& kernel : work.backward.kernels) report_of(kernel.part).backward += seconds(kernel);
    for (const cost::Kernel& kernel : work.recompute.kernels) report_of(kernel.part).recompute += seconds(kernel);
  }
  for (const auto& [part, bytes] : memory_.layer_tensors(strategy).kept) report_of(part).saved_bytes = bytes;
  report_of("embedding").saved_bytes = memory_.end_bytes(strategy, spec::embedding_unit());
  report_of("head").saved_bytes = memory_.end_bytes(strategy, spec::head_unit(model_));
  return reports;
}

std::vector<ChunkDurations> Evaluator::chunk_durations(const spec::Strategy& strategy) {
  const std::vector<int64_t>& layers = stage_layers(strategy);
  const UnitTimes& units = unit_times(strategy);
  const int64_t chunks = strategy.virtual_pipeline;
  // The recipes of other programs cut all chunks alike.
  const bool cut = recipe_.name == "ridgeline";
  const std::vector<spec::StageUnits> held = cut ? cost::held_units(model_, strategy) : std::vector<spec::StageUnits>();
  std::vector<ChunkDurations> durations;
  for (int64_t stage = 0; stage < strategy.pipeline; ++stage) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const bool first = stage == 0 && chunk == 0, last = stage == strategy.head_stage() && chunk == chunks - 1;
      PassTimes times;
      if (cut) {
        times.add(units.layer, to_double(held[stage][chunk].size() - (first ? 1 : 0) - (last ? 1 : 0)));
      } else {
        times.add(units.layer, to_double(layers[stage]) / to_double(chunks));
      }
      if (first) times.add(units.embedding, 1);
      if (last) times.add(units.head, 1);
      const double host = 0.5e-3 * machine_.stack.micro_batch_ms / to_double(chunks);
      durations.push_back({times.forward() + host, times.backward() + host, times.backward_weight});
    }
  }
  return durations;
}

Timeline Evaluator::play(const spec::Strategy& strategy) {
  const schedule::Schedule schedule = cost::step_schedule(model_, strategy);
  return simulate::play(schedule, chunk_durations(strategy), message_seconds(strategy), /*keeps_spans=*/true);
}

}  // namespace ridgeline::simulate
