// Replica check: are the copies of parameters that several ranks hold still the same bits? All updates are computed alike
// on all of them, so a copy that differs is a fault of memory, device or program, and without a check it shows, if ever,
// as a loss that is a little worse.
//
// What is compared follows from the placements: over the data axis (with ZeRO-3 over replicas of the shards) all that a
// rank keeps, over the tensor axis the parameters that lie replicated there, over tied stages what they share. Each rank
// hashes its values once (XXH3); one hash of the hashes is gathered over each axis, and those of single parameters only
// where these differ.
#pragma once

#include <cstdint>

#include "mesh/mesh.h"
#include "nn/flat_parameters.h"

namespace ridgeline::train {

// Throws Failure, naming parameters and ranks, on every rank that holds one of differing copies. Collective.
void check_replicas(const nn::FlatParameters& parameters, const mesh::Mesh& mesh, int64_t finished_steps);

}  // namespace ridgeline::train
