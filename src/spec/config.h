// The config file of `ridgeline train`: every key of a TrainSpec, declared once.
//
//   TrainConfig config = load_train_spec("run.toml", {"optimizer.lr=3e-4"});
//   config.sources.located([&] { derive_data(config.spec.strategy, config.spec.model, ranks); });
//
// `model.preset` sets the shape first and the other model keys override it, wherever each of them was given. Relative
// data paths are taken relative to the working directory. docs/config.md is printed from these declarations.
#pragma once

#include <string>
#include <vector>

#include "core/schema.h"
#include "spec/train.h"

namespace ridgeline::spec {

// Declares the keys of [strategy] alone, for other files that hold one.
void bind_strategy(Schema& schema, Strategy& strategy);

// Declares all keys; the defaults are what `spec` holds now. `spec` must outlive `schema`.
void bind(Schema& schema, TrainSpec& spec);

struct TrainConfig {
  TrainSpec spec;
  Sources sources;                     // where each key came from, for errors found later
  std::vector<std::string> overrides;  // a line for each value that another one replaced, to be logged at start
};

// Reads and validates. `sets` are "key=value" texts, as --set takes them; `path` may be empty for defaults with `sets`.
// Throws InputError (see core/schema.h) for everything that is wrong with the input.
TrainConfig load_train_spec(const std::string& path, const std::vector<std::string>& sets = {});

// A complete config that reads back to the same record; with docs, one for people to start from (see Schema::to_toml).
std::string to_toml(const TrainSpec& spec, bool with_docs = false);

// What is kept beside saved state, complete but for model.from: the state has taken the place of those weights.
std::string to_saved_toml(const TrainSpec& spec);

// What single ranges cannot say: relations between keys of different tables. Calls validate(spec.model).
void validate(const TrainSpec& spec);

}  // namespace ridgeline::spec
