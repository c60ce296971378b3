#include "nn/stage.h"

#include "core/error.h"
#include "nn/embedding.h"
#include "nn/layer.h"

namespace ridgeline::nn {

Stage::Stage(const Context& context, const FlatParameters& parameters, spec::Range units, Residence* residence)
    : context_(context), units_(units), residence_(residence) {
  if (context.model.positions == spec::Positions::rotary) rotary_.emplace(context.model, context.device);
  const Rotary* rotary = rotary_ ? &*rotary_ : nullptr;
  for (int64_t unit = units.begin; unit < units.end; ++unit) {
    if (unit == spec::embedding_unit()) {
      list_.push_back(std::make_unique<Embedding>(context, parameters));
    } else if (unit == spec::head_unit(context.model)) {
      auto head = std::make_unique<Head>(context, parameters);
      head_ = head.get();
      list_.push_back(std::move(head));
    } else {
      list_.push_back(std::make_unique<Layer>(context, parameters, unit - spec::layer_unit(0), rotary));
    }
  }
}

std::vector<int64_t> Stage::boundary_shape(const MicroBatch& batch) const {
  return {context_.local_rows(batch.tokens_total()).size(), context_.model.hidden};
}

void Stage::enter(size_t index, const Uses& uses, std::optional<size_t> next) const {
  if (residence_ == nullptr) return;
  const auto unit = [&](size_t of) { return units_.begin + static_cast<int64_t>(of); };
  residence_->enter(unit(index), uses, next ? std::optional(unit(*next)) : std::nullopt);
}

void Stage::leave(size_t index, bool gradients_final) const {
  if (residence_ != nullptr) residence_->leave(units_.begin + static_cast<int64_t>(index), gradients_final);
}

at::Tensor Stage::forward_unit(size_t index, const at::Tensor& input, const MicroBatch& batch, Saved* saved) const {
  const Unit& unit = *list_[index];
  enter(index, {true, saved != nullptr && unit.forward_adds_gradients()},
        index + 1 < list_.size() ? std::optional(index + 1) : std::nullopt);
  at::Tensor output = unit.forward(input, batch, saved);
  leave(index, false);
  return output;
}

at::Tensor Stage::forward(const at::Tensor& input, InFlight& in_flight) const {
  at::Tensor current = input;
  in_flight.saved.clear();
  in_flight.saved.resize(list_.size());
  for (size_t index = 0; index < list_.size(); ++index) {
    current = forward_unit(index, current, in_flight.batch, &in_flight.saved[index]);
  }
  return current;
}

at::Tensor Stage::forward_only(const at::Tensor& input, const MicroBatch& batch) const {
  at::Tensor current = input;
  for (size_t index = 0; index < list_.size(); ++index) current = forward_unit(index, current, batch, nullptr);
  return current;
}

at::Tensor Stage::logits(const at::Tensor& input, const MicroBatch& batch) const {
  RIDGELINE_ASSERT(head_ != nullptr);
  at::Tensor current = input;
  for (size_t index = 0; index + 1 < list_.size(); ++index) current = forward_unit(index, current, batch, nullptr);
  enter(list_.size() - 1, {}, std::nullopt);
  at::Tensor logits = head_->logits(current);
  leave(list_.size() - 1, false);
  return logits;
}

at::Tensor Stage::backward_unit(size_t index, const at::Tensor& output_gradient, InFlight& in_flight,
                                WeightGradientQueue& weights) const {
  const bool reads_next = index > 0 && list_[index - 1]->backward_reads_values();
  enter(index, {list_[index]->backward_reads_values(), true}, reads_next ? std::optional(index - 1) : std::nullopt);
  at::Tensor gradient = list_[index]->backward(output_gradient, in_flight.batch, *in_flight.saved[index], weights);
  in_flight.saved[index].reset();
  return gradient;
}

at::Tensor Stage::backward(const at::Tensor& output_gradient, InFlight& in_flight, const UnitFinished& finished) const {
  at::Tensor gradient = output_gradient;
  for (size_t index = list_.size(); index-- > 0;) {
    WeightGradientQueue weights(/*deferred=*/false);
    gradient = backward_unit(index, gradient, in_flight, weights);
    weights.run();
    leave(index, true);
    finished(units_.begin + static_cast<int64_t>(index));
  }
  return gradient;
}

at::Tensor Stage::backward_input(const at::Tensor& output_gradient, InFlight& in_flight) const {
  at::Tensor gradient = output_gradient;
  in_flight.weights.assign(list_.size(), WeightGradientQueue(/*deferred=*/true));
  for (size_t index = list_.size(); index-- > 0;) {
    gradient = backward_unit(index, gradient, in_flight, in_flight.weights[index]);
    leave(index, true);  // what is not deferred: norms and biases
  }
  return gradient;
}

void Stage::backward_weight(InFlight& in_flight, const UnitFinished& finished) const {
  for (size_t index = list_.size(); index-- > 0;) {
    WeightGradientQueue& weights = in_flight.weights[index];
    if (!weights.empty()) {
      enter(index, {false, true}, std::nullopt);
      weights.run();
      leave(index, true);
    }
    finished(units_.begin + static_cast<int64_t>(index));
  }
  in_flight.weights.clear();
}

}  // namespace ridgeline::nn
