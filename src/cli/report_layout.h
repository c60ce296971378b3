// The layout that a config asks for, as a report shows it: memory of each stage by what it holds, the pipeline's
// timeline, and with a machine the predicted times.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "cost/recipe.h"
#include "spec/machine.h"
#include "spec/train.h"

namespace ridgeline::cli {

// `train.strategy.data` is derived. With a machine: the document of `simulate --json`. Without: "strategy", and
// "stages" with the account of memory (cost/memory.h). Both with "description", "tensor_bytes" (that account's total on
// the fullest device: what an allocator counts, without the machine's context and communicators), "timeline" (left out
// where it would be too long to draw) and "devices".
//
// "timeline": "stages", "micro_batches" of a step and "drawn" ones (the steady state of a long step is cut short),
// "unit" ("seconds", or "forward" where times are those of equal stages whose backward takes twice a forward's), "tick"
// (in units), and "spans": for each stage rows [begin, end, kind, micro_batch, chunk] in ticks, where kind is 0
// forward, 1 backward, 2 backward of inputs, 3 of weights.
nlohmann::json layout_json(const spec::TrainSpec& train, const std::optional<spec::Machine>& machine,
                           const cost::Recipe& recipe);

// Facts of a machine that a reader of a report asks for: rows [name, value].
nlohmann::json machine_json(const spec::Machine& machine);

// Keys of a config: rows [key, value as TOML].
nlohmann::json settings_json(const std::string& toml);

}  // namespace ridgeline::cli
