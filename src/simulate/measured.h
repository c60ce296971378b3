// Recorded runs as plans: what a row of a table says was run, and how long a step took.
//
// Tables are told apart by their columns: those of validation/throughput.csv (the project's own form), the artefacts of
// vTrain, SimuMax and Sailor, and the step times of Korthikanti et al. 2022. A row is kept whatever it lacks; where it
// cannot be predicted `why_not` says why: an empty cell of the strategy, or of the shape's four main figures, is never
// filled by a guess. Where nothing says more, the machine follows from the system's name or the device's, and
// vocabulary, the MLP's width, key heads, a gate and dropout are the usual ones (`assumed` says so).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/recipe.h"
#include "simulate/csv.h"
#include "simulate/prediction.h"
#include "spec/machine.h"
#include "spec/model.h"
#include "spec/train.h"

namespace ridgeline::simulate {

// The why_not of a row that can be predicted and compared with nothing; its `data` is not derived.
inline constexpr const char* kTimeNotKnown = "neither step time nor tokens a second is known";

struct MeasuredRun {
  std::string source;
  std::string label;    // "runs.csv:12 GPT-175B"
  std::string machine;  // name of a shipped machine; empty: not known
  spec::ModelSpec model;
  spec::Strategy strategy;
  spec::Precision compute = spec::Precision::bf16;
  bool fp8 = false;  // products of the layers' weights are in 8 bits
  bool fused_attention = false;
  bool knows_attention = false;  // else the stack's program says
  int64_t devices = 0;
  double step_seconds = 0;
  double peak_bytes = 0;          // allocated on the fullest device; 0: not recorded
  bool peak_has_reserve = false;  // with the driver's context and communicators
  std::string assumed;            // what no column says
  std::string why_not;            // empty: can be predicted
};

struct MeasuredOptions {
  // Stands in for an empty cell `recompute`, and is said in `assumed`; none: such a row is not predicted.
  std::optional<spec::Recompute> unknown_recompute;
};

// Throws InputError where the table is of none of the known forms.
std::vector<MeasuredRun> measured_runs(const Table& table, const MeasuredOptions& options = {});

// Why a run cannot be predicted on this machine; empty: it can.
std::string why_not(const MeasuredRun& run, const spec::Machine& machine);

// The recipe of the stack's program, with what the row knows better: its attention and its precision.
cost::Recipe recipe_of(const MeasuredRun& run, const spec::Machine& machine);

}  // namespace ridgeline::simulate
