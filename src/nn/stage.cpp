#include "nn/stage.h"

#include "core/error.h"
#include "nn/embedding.h"
#include "nn/layer.h"

namespace ridgeline::nn {

Stage::Stage(const Context& context, const FlatParameters& parameters, spec::Range units)
    : context_(context), units_(units) {
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

at::Tensor Stage::forward(const at::Tensor& input, InFlight& in_flight) const {
  at::Tensor current = input;
  in_flight.saved.clear();
  in_flight.saved.resize(list_.size());
  for (size_t index = 0; index < list_.size(); ++index) {
    current = list_[index]->forward(current, in_flight.batch, &in_flight.saved[index]);
  }
  return current;
}

at::Tensor Stage::forward_only(const at::Tensor& input, const MicroBatch& batch) const {
  at::Tensor current = input;
  for (const auto& unit : list_) current = unit->forward(current, batch, nullptr);
  return current;
}

at::Tensor Stage::logits(const at::Tensor& input, const MicroBatch& batch) const {
  RIDGELINE_ASSERT(head_ != nullptr);
  at::Tensor current = input;
  for (size_t index = 0; index + 1 < list_.size(); ++index) current = list_[index]->forward(current, batch, nullptr);
  return head_->logits(current);
}

at::Tensor Stage::backward(const at::Tensor& output_gradient, InFlight& in_flight, const UnitFinished& finished) const {
  at::Tensor gradient = output_gradient;
  for (size_t index = list_.size(); index-- > 0;) {
    WeightGradientQueue weights(/*deferred=*/false);
    gradient = list_[index]->backward(gradient, in_flight.batch, *in_flight.saved[index], weights);
    weights.run();
    in_flight.saved[index].reset();
    finished(units_.begin + static_cast<int64_t>(index));
  }
  return gradient;
}

at::Tensor Stage::backward_input(const at::Tensor& output_gradient, InFlight& in_flight) const {
  at::Tensor gradient = output_gradient;
  in_flight.weights.assign(list_.size(), WeightGradientQueue(/*deferred=*/true));
  for (size_t index = list_.size(); index-- > 0;) {
    gradient = list_[index]->backward(gradient, in_flight.batch, *in_flight.saved[index], in_flight.weights[index]);
    in_flight.saved[index].reset();
  }
  return gradient;
}

void Stage::backward_weight(InFlight& in_flight, const UnitFinished& finished) const {
  for (size_t index = list_.size(); index-- > 0;) {
    in_flight.weights[index].run();
    finished(units_.begin + static_cast<int64_t>(index));
  }
  in_flight.weights.clear();
}

}  // namespace ridgeline::nn
