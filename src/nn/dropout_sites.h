// The places of a model where dropout acts, as numbers that key its decisions. Part of the format of runs: must not change.
#pragma once

#include <cstdint>

namespace ridgeline::nn {

constexpr int64_t kEmbeddingSite = 0;
constexpr int64_t attention_branch_site(int64_t layer) { return 1 + 3 * layer; }
constexpr int64_t mlp_branch_site(int64_t layer) { return 2 + 3 * layer; }
constexpr int64_t attention_probabilities_site(int64_t layer) { return 3 + 3 * layer; }

}  // namespace ridgeline::nn
