// Whole trainings that others have reported, beside what a projection says of them.
//
// A table has the columns of validation/throughput.csv (model, layout, machine) and those of a whole training:
// tokens_b, device_hours, wall_days, energy_mwh, energy_of ("devices": the accelerators alone, as measured or counted
// there; "all"), pue, ramp (START:INCREMENT:SAMPLES) and aside ("yes": no figure of the machine file was set by it).
// Where a rate of the run itself is published (iteration_s, tokens_per_s_per_gpu), that is the step, as a measured
// short run would give it; else the step is predicted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "project/projection.h"
#include "simulate/csv.h"

namespace ridgeline::project {

struct FullRun {
  std::string label, source, machine;
  bool from_rate = false;
  bool aside = false;
  std::optional<double> device_hours, days, energy_mwh;  // as reported
  bool energy_of_devices = false;
  std::optional<Projection> projection;
  std::string why_not;  // where there is none

  // Projected over reported, less one; nothing where either is not known.
  std::optional<double> device_hours_error() const;
  std::optional<double> days_error() const;
  std::optional<double> energy_error() const;
  const std::optional<Range>& projected_energy() const;
};

// Throws InputError where the table is of another kind.
std::vector<FullRun> full_runs(const simulate::Table& table);

// "32:32:2M". Throws InputError, naming `what`.
BatchRamp parse_ramp(const std::string& text, const std::string& what);

}  // namespace ridgeline::project
