#include "project/full_runs.h"

#include <charconv>

#include "core/error.h"
#include "project/quantity.h"
#include "simulate/measured.h"

namespace ridgeline::project {
namespace {

using simulate::Table;

void read_reported(const Table& table, size_t row, FullRun& run) {
  run.device_hours = table.number(row, "device_hours");
  run.days = table.number(row, "wall_days");
  run.energy_mwh = table.number(row, "energy_mwh");
  run.energy_of_devices = table.text(row, "energy_of") == "devices";
  run.aside = table.text(row, "aside") == "yes";
  run.from_rate = !table.text(row, "iteration_s").empty() || !table.text(row, "tokens_per_s_per_gpu").empty();
}

Conditions conditions_of(const Table& table, size_t row, const spec::Machine& machine, int64_t devices) {
  Conditions conditions;
  conditions.tokens = *table.number(row, "tokens_b") * 1e9;
  conditions.devices = devices;
  conditions.devices_per_node = machine.devices_per_node;
  conditions.power = machine.power;
  if (conditions.power.busy_w <= 0) conditions.power.busy_w = machine.device.power_w;
  if (const auto pue = table.number(row, "pue")) conditions.power.pue = *pue;
  conditions.operation = machine.operation;
  if (const std::string ramp = table.text(row, "ramp"); !ramp.empty()) {
    conditions.ramp = parse_ramp(ramp, table.where(row) + ": ramp");
  }
  return conditions;
}

void project_row(const Table& table, size_t row, const simulate::MeasuredRun& measured, FullRun& run) {
  if (!measured.why_not.empty() && measured.why_not != simulate::kTimeNotKnown)
    throw InputError("{}", measured.why_not);
  if (!table.number(row, "tokens_b")) throw InputError("tokens_b is not known");
  const spec::Machine machine = spec::load_machine(measured.machine);
  spec::TrainSpec spec;
  spec.model = measured.model;
  spec.strategy = measured.strategy;
  spec.precision.compute = measured.compute;
  spec::validate(spec.model);
  spec::derive_data(spec.strategy, spec.model, measured.devices);
  const cost::Recipe recipe = recipe_of(measured, machine);
  StepModel steps = run.from_rate ? StepModel(spec, measured.step_seconds) : StepModel(spec, machine, recipe);
  run.projection = project(steps, conditions_of(table, row, machine, measured.devices));
}

std::optional<double> error_of(const std::optional<double>& reported, double projected) {
  if (!reported || *reported <= 0) return std::nullopt;
  return projected / *reported - 1;
}

}  // namespace

std::optional<double> FullRun::device_hours_error() const {
  return projection ? error_of(device_hours, projection->device_hours.middle) : std::nullopt;
}

std::optional<double> FullRun::days_error() const {
  return projection ? error_of(days, projection->days.middle) : std::nullopt;
}

std::optional<double> FullRun::energy_error() const {
  return projection && projected_energy() ? error_of(energy_mwh, projected_energy()->middle) : std::nullopt;
}

const std::optional<Range>& FullRun::projected_energy() const {
  return energy_of_devices ? projection->device_energy_mwh : projection->energy_mwh;
}

std::vector<FullRun> full_runs(const Table& table) {
  for (const char* column : {"tokens_b", "device_hours", "wall_days", "energy_mwh", "machine"}) {
    if (table.has(column)) continue;
    throw InputError("{}: no column {}: expected the columns of validation/full_runs.csv", table.file_name(), column);
  }
  const std::vector<simulate::MeasuredRun> measured = simulate::measured_runs(table);
  std::vector<FullRun> runs;
  for (size_t row = 0; row < table.rows(); ++row) {
    FullRun run;
    run.label = table.text(row, "model");
    run.source = table.text(row, "source");
    run.machine = table.text(row, "machine");
    read_reported(table, row, run);
    try {
      project_row(table, row, measured[row], run);
    } catch (const InputError& error) {
      run.why_not = error.what();
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

BatchRamp parse_ramp(const std::string& text, const std::string& what) {
  BatchRamp ramp;
  const size_t first = text.find(':'), second = text.find(':', first == text.npos ? first : first + 1);
  const auto count = [&](size_t begin, size_t end, int64_t& value) {
    const auto [rest, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    return error == std::errc() && rest == text.data() + end;
  };
  if (second == text.npos || !count(0, first, ramp.start) || !count(first + 1, second, ramp.increment)) {
    throw InputError("{} '{}': expected START:INCREMENT:SAMPLES, such as 32:32:2M", what, text);
  }
  ramp.samples = parse_count(text.substr(second + 1), what + ", samples");
  return ramp;
}

}  // namespace ridgeline::project
