#include "train/pipeline_executor.h"

#include <utility>

#include "core/error.h"

namespace ridgeline::train {

using schedule::Action;
using schedule::ActionKind;

at::Tensor PipelineExecutor::run(const schedule::Schedule& schedule, const BatchOf& batch_of,
                                 const nn::Stage::UnitFinished& finished) {
  start(schedule, batch_of);
  for (const Action& action : schedule.actions[stage_number_]) execute(action, finished);
  for (Link* link : {&activations_, &gradients_}) {
    for (Message& message : link->sent) message.work.wait();
    link->sent.clear();
  }
  RIDGELINE_ASSERT(in_flight_.empty());
  return loss_sum_;
}

void PipelineExecutor::start(const schedule::Schedule& schedule, const BatchOf& batch_of) {
  schedule_ = &schedule;
  stage_number_ = mesh_.coordinate(spec::Axis::pipeline);
  batch_of_ = batch_of;
  in_flight_.clear();
  input_ = output_ = output_gradient_ = input_gradient_ = at::Tensor();
  loss_sum_ = at::zeros({1}, options_.dtype(at::kDouble));
  activations_ = Link{&mesh_.forward_pipeline(), {}, 0, {}, {}};
  gradients_ = Link{&mesh_.backward_pipeline(), {}, 0, {}, {}};
  last_backward_ = -1;
  for (const Action& action : schedule.actions[stage_number_]) {
    if (action.kind == ActionKind::receive_activation) activations_.receives.push_back(action);
    if (action.kind == ActionKind::receive_gradient) gradients_.receives.push_back(action);
    if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight) {
      last_backward_ = action.micro_batch;
    }
  }
  post_receive(activations_);
  post_receive(gradients_);
}

nn::InFlight& PipelineExecutor::in_flight(int64_t micro_batch) {
  auto [entry, is_new] = in_flight_.try_emplace(micro_batch);
  if (is_new) entry->second.batch = batch_of_(micro_batch);
  return entry->second;
}

void PipelineExecutor::post_receive(Link& link) {
  if (link.next_receive == link.receives.size()) return;
  const Action& action = link.receives[link.next_receive++];
  const auto from = schedule::peer(*schedule_, stage_number_, action);
  RIDGELINE_ASSERT(from.has_value());
  at::Tensor tensor = at::empty(stage_.boundary_shape(in_flight(action.micro_batch).batch), options_);
  mesh::Work work = link.communicator->receive(tensor, *from, action.micro_batch);
  link.received.push_back({std::move(tensor), std::move(work)});
}

at::Tensor PipelineExecutor::take_received(Link& link) {
  RIDGELINE_ASSERT(!link.received.empty());
  Message message = std::move(link.received.front());
  link.received.pop_front();
  message.work.wait();
  post_receive(link);
  return message.tensor;
}

void PipelineExecutor::send(Link& link, const Action& action, at::Tensor tensor) {
  // A receiver takes messages in order, so all but the newest two are done or about to be: this bounds memory.
  if (link.sent.size() >= 2) {
    link.sent.front().work.wait();
    link.sent.pop_front();
  }
  const auto to = schedule::peer(*schedule_, stage_number_, action);
  RIDGELINE_ASSERT(to.has_value() && tensor.defined());
  tensor = tensor.contiguous();
  mesh::Work work = link.communicator->send(tensor, *to, action.micro_batch);
  link.sent.push_back({std::move(tensor), std::move(work)});
}

void PipelineExecutor::forward(int64_t micro_batch) {
  nn::InFlight& flight = in_flight(micro_batch);
  const at::Tensor input = std::move(input_);
  input_.reset();
  output_ = schedule_->has_backward ? stage_.forward(input, flight) : stage_.forward_only(input, flight.batch);
  if (stage_.is_last()) loss_sum_.add_(output_);
  if (!schedule_->has_backward) in_flight_.erase(micro_batch);
}

void PipelineExecutor::execute(const Action& action, const nn::Stage::UnitFinished& finished) {
  const bool last = action.micro_batch == last_backward_;
  const nn::Stage::UnitFinished on_unit = [&](int64_t unit) {
    if (last) finished(unit);
  };
  switch (action.kind) {
    case ActionKind::receive_activation:
      input_ = take_received(activations_);
      break;
    case ActionKind::forward:
      forward(action.micro_batch);
      break;
    case ActionKind::send_activation:
      send(activations_, action, std::move(output_));
      break;
    case ActionKind::receive_gradient:
      output_gradient_ = take_received(gradients_);
      break;
    case ActionKind::backward:
      input_gradient_ = stage_.backward(std::exchange(output_gradient_, at::Tensor()), in_flight(action.micro_batch), on_unit);
      in_flight_.erase(action.micro_batch);
      break;
    case ActionKind::backward_input:
      input_gradient_ = stage_.backward_input(std::exchange(output_gradient_, at::Tensor()), in_flight(action.micro_batch));
      break;
    case ActionKind::backward_weight:
      stage_.backward_weight(in_flight(action.micro_batch), on_unit);
      in_flight_.erase(action.micro_batch);
      break;
    case ActionKind::send_gradient:
      send(gradients_, action, std::move(input_gradient_));
      break;
  }
}

}  // namespace ridgeline::train
