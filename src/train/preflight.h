// Preflight: what can be known to fail is refused before the first step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/samples.h"
#include "spec/train.h"

namespace ridgeline::train {

// Throws Failure where the fullest rank would keep more (cost/memory.h; what lives for a moment comes on top) than
// `bytes_of_rank`, which a device has for a rank; with `on_host` its memory is the host's, where an offloaded optimizer
// lies too. `spec` as derived. The same on every rank.
void check_memory(const spec::TrainSpec& spec, int64_t bytes_of_rank, bool on_host);

// Throws InputError or Failure: held-out data too short for the evaluations, the run folder not writable, too little space
// there for a checkpoint beside the ones that are kept until it is complete. `spec` as derived.
void check_before_start(const spec::TrainSpec& spec, const data::SampleSource& source);

// Keys whose values differ between two configs in TOML, as "strategy.tensor = 1 (was 2)".
std::vector<std::string> changed_keys(const std::string& before, const std::string& now);

}  // namespace ridgeline::train
