#include "cost/flops.h"

#include "core/error.h"
#include "cost/stages.h"
#include "spec/parameters.h"
#include "spec/placement.h"

namespace ridgeline::cost {
namespace {

// What a product that takes `forward` FLOPs in its forward takes in every pass.
PassFlops passes(double forward, bool recomputed) { return {forward, 2.0 * forward, recomputed ? forward : 0.0}; }

bool recomputed(const spec::ModelSpec& model, spec::Recompute recompute, int64_t unit) {
  return recompute == spec::Recompute::full && unit != spec::head_unit(model);
}

double tensor_share(const Product& product, const spec::Strategy& strategy, int64_t tensor_rank) {
  // Rows of a micro-batch, which divide by the axis, or all of them.
  if (product.is_routed && strategy.keeps_experts_whole()) return 1.0 / static_cast<double>(strategy.tensor);
  if (product.divided == 0) return 1.0;
  const spec::Range part = spec::split_range(product.divided, strategy.tensor, tensor_rank);
  return static_cast<double>(part.size()) / static_cast<double>(product.divided);
}

}  // namespace

namespace {

// An MLP through which a token goes `times` times; each matrix is `width` wide and divided by its width.
void add_mlp(std::vector<Product>& products, const spec::ModelSpec& model, const std::string& name, int64_t width,
             int64_t times, bool is_routed = false) {
  const double forward = 2.0 * static_cast<double>(model.sequence) * static_cast<double>(model.hidden) *
                         static_cast<double>(width) * static_cast<double>(times);
  if (model.gated_mlp) products.push_back({name + " gate", forward, width, true, is_routed});
  products.push_back({name + " up", forward, width, true, is_routed});
  products.push_back({name + " down", forward, width, true, is_routed});
}

std::vector<Product> layer_products(const spec::ModelSpec& model) {
  const double sequence = static_cast<double>(model.sequence);
  const double hidden = static_cast<double>(model.hidden);
  const double query = static_cast<double>(model.query_width());
  const double qkv = query + 2.0 * static_cast<double>(model.key_width());
  std::vector<Product> products = {{"attention qkv", 2.0 * sequence * hidden * qkv, model.heads},
                                   {"attention scores", 2.0 * sequence * sequence * query, model.heads, false},
                                   {"attention context", 2.0 * sequence * sequence * query, model.heads, false},
                                   {"attention output", 2.0 * sequence * hidden * query, model.heads}};
  if (model.experts == 0) {
    add_mlp(products, model, "mlp", model.ffn(), 1);
    return products;
  }
  products.push_back({"router", 2.0 * sequence * hidden * static_cast<double>(model.experts), 0, true, true});
  add_mlp(products, model, "experts", model.expert_ffn(), model.experts_per_token, true);
  if (model.shared_ffn_hidden > 0) add_mlp(products, model, "shared experts", model.shared_ffn_hidden, 1, true);
  return products;
}

}  // namespace

std::vector<Product> unit_products(const spec::ModelSpec& model, int64_t unit) {
  RIDGELINE_ASSERT(unit >= 0 && unit < spec::unit_count(model));
  if (unit == spec::embedding_unit()) return {};
  if (unit == spec::head_unit(model)) {
    const double logits = 2.0 * static_cast<double>(model.sequence) * static_cast<double>(model.hidden) *
                          static_cast<double>(model.vocabulary);
    return {{"logits", logits, model.vocabulary}};
  }
  return layer_products(model);
}

PassFlops& PassFlops::operator+=(const PassFlops& other) {
  forward += other.forward;
  backward += other.backward;
  recompute += other.recompute;
  return *this;
}

PassFlops unit_flops(const spec::ModelSpec& model, spec::Recompute recompute, int64_t unit) {
  PassFlops total;
  for (const Product& product : unit_products(model, unit)) {
    total += passes(product.forward_flops, recomputed(model, recompute, unit));
  }
  return total;
}

double unit_deferrable_flops(const spec::ModelSpec& model, int64_t unit) {
  double total = 0;
  if (unit == spec::head_unit(model)) return total;
  for (const Product& product : unit_products(model, unit)) total += product.has_weight ? product.forward_flops : 0.0;
  return total;
}

PassFlops device_flops(const spec::ModelSpec& model, const spec::Strategy& strategy, int64_t stage,
                       int64_t tensor_rank) {
  const std::vector<spec::StageUnits> stages = held_units(model, strategy);
  RIDGELINE_ASSERT(stage >= 0 && stage < static_cast<int64_t>(stages.size()));
  PassFlops total;
  for (const spec::Range& chunk : stages[stage]) {
    for (int64_t unit = chunk.begin; unit < chunk.end; ++unit) {
      for (const Product& product : unit_products(model, unit)) {
        const double share = tensor_share(product, strategy, tensor_rank) * static_cast<double>(strategy.micro_batch) /
                             static_cast<double>(strategy.context);
        total += passes(product.forward_flops * share, recomputed(model, strategy.recompute, unit));
      }
    }
  }
  return total;
}

PassFlops sample_flops(const spec::ModelSpec& model, spec::Recompute recompute) {
  PassFlops total;
  for (int64_t unit = 0; unit < spec::unit_count(model); ++unit) total += unit_flops(model, recompute, unit);
  return total;
}

double step_model_flops(const spec::ModelSpec& model, const spec::Strategy& strategy) {
  return static_cast<double>(strategy.global_batch) * sample_flops(model, strategy.recompute).model_flops();
}

double step_hardware_flops(const spec::ModelSpec& model, const spec::Strategy& strategy) {
  return static_cast<double>(strategy.global_batch) * sample_flops(model, strategy.recompute).hardware_flops();
}

}  // namespace ridgeline::cost
