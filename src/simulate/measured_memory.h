// Recorded memory of pipeline stages beside predictions (validation/memory.csv): what was allocated between steps, and
// at the peak of a step. A row says all of its model and its strategy; one that does not has a why_not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulate/csv.h"
#include "simulate/validation.h"

namespace ridgeline::simulate {

struct MeasuredMemory {
  std::string source;
  std::string label;
  double allocated = 0;  // bytes; 0: not recorded
  double peak = 0;
  double reserved = 0;
  double predicted_allocated = 0;
  double predicted_peak = 0;
  double predicted_low = 0, predicted_high = 0;  // with the allocator's slack, without context and communicators
  std::string why_not;
  double error() const { return predicted_peak / peak - 1; }
};

bool is_memory_table(const Table& table);
// `machine`: name or path for all rows; empty: the one that each row's column `machine` names.
std::vector<MeasuredMemory> validate_memory(const Table& table, const std::string& machine);
// Of the peaks, by source and for all.
std::vector<Accuracy> accuracies(const std::vector<MeasuredMemory>& rows);

}  // namespace ridgeline::simulate
