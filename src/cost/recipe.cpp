#include "cost/recipe.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline::cost {
namespace {

Recipe megatron() {
  Recipe recipe;
  recipe.name = "megatron";
  recipe.fused_attention = false;
  recipe.selective_is_attention = true;
  recipe.reduces_while_backward = false;
  recipe.hides_tensor_backward = true;
  recipe.fills_stages = true;
  recipe.keeps_masks = true;
  recipe.keeps_message_slices = true;
  recipe.counts_transients = false;
  recipe.has_working_buffer = false;
  recipe.chunks_logits = false;
  return recipe;
}

Recipe megatron_core() {
  Recipe recipe = megatron();
  recipe.name = "megatron-core";
  recipe.fused_attention = true;
  recipe.keeps_message_slices = false;
  recipe.keeps_weight_gradients = true;
  return recipe;
}

Recipe nemo() {
  Recipe recipe = megatron_core();
  recipe.name = "nemo";
  recipe.reduces_while_backward = true;
  recipe.gathers_while_forward = true;
  recipe.hides_tensor_forward = true;
  recipe.hides_messages = true;
  return recipe;
}

Recipe deepspeed() {
  Recipe recipe = megatron();
  recipe.name = "deepspeed";
  recipe.fused_attention = true;
  recipe.bytes_fixed = 2;
  recipe.bytes_sharded = 14;
  recipe.gradient_bytes = 2;
  recipe.keeps_unsharded_gradients = true;
  recipe.bucket_elements = 5e8;
  return recipe;
}

Recipe deepspeed_bf16() {
  Recipe recipe = megatron();
  recipe.name = "deepspeed-bf16";
  recipe.bytes_fixed = 8;
  recipe.shards_always = true;
  return recipe;
}

}  // namespace

Recipe recipe(const std::string& program) {
  const std::vector<Recipe> known = {Recipe{}, megatron(), megatron_core(), nemo(), deepspeed(), deepspeed_bf16()};
  std::vector<std::string> names;
  for (const Recipe& candidate : known) {
    if (candidate.name == program) return candidate;
    names.push_back(candidate.name);
  }
  throw InputError("stack.program = '{}': no such recipe{} (there are {})", program, did_you_mean(program, names),
                   join(names));
}

spec::Strategy with_stages(spec::Strategy strategy, const spec::ModelSpec& model, const Recipe& recipe) {
  if (!recipe.fills_stages || !strategy.stage_layers.empty() || strategy.pipeline < 1) return strategy;
  const int64_t full = (model.layers + strategy.pipeline - 1) / strategy.pipeline;
  int64_t left = model.layers;
  for (int64_t stage = 0; stage < strategy.pipeline; ++stage) {
    const int64_t stages_after = strategy.pipeline - stage - 1;
    const int64_t layers = std::max<int64_t>(1, std::min(full, left - stages_after));
    strategy.stage_layers.push_back(layers);
    left -= layers;
  }
  return strategy;
}

}  // namespace ridgeline::cost
