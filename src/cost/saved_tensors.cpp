#include "cost/saved_tensors.h"

#include "core/error.h"
#include "spec/parameters.h"

namespace ridgeline::cost {
namespace {

using spec::Placement;
using spec::Recompute;

std::vector<SavedTensor> layer_table(const spec::ModelSpec& model, const spec::Strategy& strategy) {
  const int64_t rows = strategy.micro_batch * model.sequence;
  const std::vector<int64_t> stream = {rows, model.hidden};
  const std::vector<int64_t> heads = {strategy.micro_batch, model.heads, model.sequence};
  const std::vector<int64_t> heads_wide = {strategy.micro_batch, model.heads, model.sequence, model.head_size()};
  const std::vector<int64_t> wide = {rows, model.ffn()};
  const Placement residual = spec::residual_placement(strategy);
  return {
      {"attention", "input", stream, Element::compute, residual, Recompute::full},
      {"attention", "norm mean", {rows}, Element::fp32, residual, Recompute::selective},
      {"attention", "norm rstd", {rows}, Element::fp32, residual, Recompute::selective},
      {"attention", "norm output", stream, Element::compute, residual, Recompute::none},
      {"attention", "qkv", {rows, 3, model.hidden}, Element::compute, Placement::shard(2), Recompute::selective},
      {"attention", "attention output", heads_wide, Element::compute, Placement::shard(1), Recompute::selective},
      {"attention", "log-sum-exp", heads, Element::fp32, Placement::shard(1), Recompute::selective},
      {"mlp", "input", stream, Element::compute, residual, Recompute::selective},
      {"mlp", "norm mean", {rows}, Element::fp32, residual, Recompute::selective},
      {"mlp", "norm rstd", {rows}, Element::fp32, residual, Recompute::selective},
      {"mlp", "norm output", stream, Element::compute, residual, Recompute::none},
      {"mlp", "pre-activation", wide, Element::compute, Placement::shard(1), Recompute::selective},
      {"mlp", "activation", wide, Element::compute, Placement::shard(1), Recompute::none},
  };
}

// The head forms the gradient of its logits in its forward (nn/head.h), so it keeps that of its normed rows.
std::vector<SavedTensor> head_table(const spec::ModelSpec& model, const spec::Strategy& strategy) {
  const int64_t rows = strategy.micro_batch * model.sequence;
  const Placement residual = spec::residual_placement(strategy);
  return {
      {"head", "input", {rows, model.hidden}, Element::compute, residual, Recompute::full},
      {"head", "norm mean", {rows}, Element::fp32, residual, Recompute::full},
      {"head", "norm rstd", {rows}, Element::fp32, residual, Recompute::full},
      {"head", "norm output gradient", {rows, model.hidden}, Element::compute, residual, Recompute::full},
  };
}

}  // namespace

int64_t element_bytes(Element element, spec::Precision compute) {
  return element == Element::fp32 || compute == spec::Precision::fp32 ? 4 : 2;
}

std::vector<SavedTensor> saved_tensors(const spec::ModelSpec& model, const spec::Strategy& strategy, int64_t unit) {
  RIDGELINE_ASSERT(unit >= 0 && unit < spec::unit_count(model));
  if (unit == spec::embedding_unit()) return {};  // its backward needs the tokens alone
  if (unit == spec::head_unit(model)) return head_table(model, strategy);
  return layer_table(model, strategy);
}

bool is_kept(const SavedTensor& tensor, spec::Recompute recompute) {
  // Recompute is ordered from the weakest to the strongest.
  static_assert(Recompute::none < Recompute::selective && Recompute::selective < Recompute::full);
  return recompute <= tensor.kept_through;
}

int64_t local_bytes(const SavedTensor& tensor, const spec::Strategy& strategy, spec::Precision compute,
                    int64_t tensor_rank) {
  const spec::Box box = spec::local_box(tensor.shape, tensor.placement, strategy.tensor, tensor_rank);
  return box.elements() * element_bytes(tensor.element, compute);
}

}  // namespace ridgeline::cost
