// What the readers of recorded tables share (simulate/measured.h). A reader turns a row into a MeasuredRun and leaves
// in `why_not` the first thing that keeps it from being predicted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulate/csv.h"
#include "simulate/measured.h"

namespace ridgeline::simulate {

// Megatron's dropout, which runs for speed leave on.
constexpr double kUsualDropout = 0.1;

// Says why a row cannot be predicted, unless an earlier reason stands.
void refuse(MeasuredRun& run, const std::string& why_not);
// Takes what a cell holds; an empty one keeps the row from being predicted.
void need(MeasuredRun& run, const std::optional<int64_t>& value, int64_t& target, const std::string& column);
// Adds to what no column says.
void assume(MeasuredRun& run, const std::string& what);
// Derives `data` and says what is wrong in place of throwing.
void settle(MeasuredRun& run);

// The columns of validation/throughput.csv and of published tables like it.
std::vector<MeasuredRun> published_rows(const Table& table, const MeasuredOptions& options);

// Tables of other projects, told apart by their columns; nothing where the table is none of them.
std::optional<std::vector<MeasuredRun>> foreign_rows(const Table& table);

}  // namespace ridgeline::simulate
