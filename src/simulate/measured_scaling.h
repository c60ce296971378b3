// Recorded scaling efficiencies beside predictions (validation/scaling.csv): how much of its rate a device keeps when a
// run grows from `base_gpu_count` devices with `base_batch` samples a step to `gpu_count` with `global_batch`.
//
//   efficiency = (global_batch / (step time * gpu_count)) / (base_batch / (base step time * base_gpu_count))
//
// Batches are those that really ran, in samples. A row says all of its model and its strategy; one that does not has a
// why_not. Errors are differences of efficiencies: 0.01 is a point.
#pragma once

#include <string>
#include <vector>

#include "simulate/csv.h"
#include "simulate/validation.h"

namespace ridgeline::simulate {

struct MeasuredScaling {
  std::string source;
  std::string label;
  double efficiency = 0;
  double predicted = 0;
  std::string why_not;
  double error() const { return predicted - efficiency; }
};

bool is_scaling_table(const Table& table);
// `machine`: name or path for all rows; empty: the one that each row's column `machine` names.
std::vector<MeasuredScaling> validate_scaling(const Table& table, const std::string& machine);
std::vector<Accuracy> accuracies(const std::vector<MeasuredScaling>& rows);

}  // namespace ridgeline::simulate
