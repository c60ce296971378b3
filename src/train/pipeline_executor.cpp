#include "train/pipeline_executor.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace ridgeline::train {

using schedule::Action;
using schedule::ActionKind;

at::Tensor PipelineExecutor::run(const schedule::Schedule& schedule, const BatchOf& batch_of,
                                 const nn::Stage::UnitFinished& finished) {
  start(schedule, batch_of);
  for (size_t index = 0; index < schedule.actions[stage_number_].size(); ++index) {
    execute(index, finished);
    if (action_done_) action_done_(schedule.actions[stage_number_][index]);
  }
  for (auto& [number, peer] : peers_) {
    for (Message& message : peer.sent) message.work.wait();
  }
  peers_.clear();
  RIDGELINE_ASSERT(pieces_.empty() && held_back_.empty());
  return loss_sum_;
}

void PipelineExecutor::start(const schedule::Schedule& schedule, const BatchOf& batch_of) {
  RIDGELINE_ASSERT(schedule.chunks_per_stage == static_cast<int64_t>(chunks_.size()));
  schedule_ = &schedule;
  stage_number_ = mesh_.coordinate(spec::Axis::pipeline);
  batch_of_ = batch_of;
  pieces_.clear();
  peers_.clear();
  unfinished_.clear();
  held_back_.clear();
  loss_sum_ = at::zeros({1}, options_.dtype(at::kDouble));
  last_backward_.assign(chunks_.size(), 0);
  const schedule::StageActions& list = schedule.actions[stage_number_];
  for (size_t index = 0; index < list.size(); ++index) {
    const Action& action = list[index];
    if (schedule::is_receive(action.kind)) peers_[peer(action)].receives.push_back(action);
    if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight) {
      last_backward_[action.chunk] = index;
    }
  }
  for (const nn::Stage* chunk : chunks_) {
    for (int64_t unit = chunk->units().begin; unit < chunk->units().end; ++unit) unfinished_.insert(unit);
  }
  for (const auto& [number, peer] : peers_) post_receive(number);
}

PipelineExecutor::Piece& PipelineExecutor::piece(int64_t micro_batch, int64_t chunk) {
  auto [entry, is_new] = pieces_.try_emplace({micro_batch, chunk});
  if (is_new) entry->second.flight.batch = batch_of_(micro_batch);
  return entry->second;
}

int64_t PipelineExecutor::peer(const Action& action) const {
  const std::optional<int64_t> other = schedule::peer(*schedule_, stage_number_, action);
  RIDGELINE_ASSERT(other.has_value());
  return *other;
}

std::optional<int64_t> PipelineExecutor::chunk_here(int64_t chunk, int64_t step) const {
  const auto place = schedule::holder(*schedule_, schedule_->global_stage[stage_number_][chunk] + step);
  if (!place || place->stage != stage_number_) return std::nullopt;
  return place->chunk;
}

const mesh::Communicator& PipelineExecutor::towards(int64_t from, int64_t to) const {
  return from < to ? mesh_.forward_pipeline() : mesh_.backward_pipeline();
}

void PipelineExecutor::post_receive(int64_t from) {
  Peer& peer = peers_[from];
  if (peer.next_receive == peer.receives.size()) return;
  const Action& action = peer.receives[peer.next_receive++];
  const nn::MicroBatch& batch = piece(action.micro_batch, action.chunk).flight.batch;
  at::Tensor tensor = at::empty(chunks_[action.chunk]->boundary_shape(batch), options_);
  mesh::Work work = towards(from, stage_number_).receive(tensor, from, action.micro_batch);
  peer.received.push_back({std::move(tensor), std::move(work)});
}

at::Tensor PipelineExecutor::take_received(const Action& action) {
  const int64_t from = peer(action);
  std::deque<Message>& received = peers_[from].received;
  RIDGELINE_ASSERT(!received.empty());
  Message message = std::move(received.front());
  received.pop_front();
  message.work.wait();
  post_receive(from);
  return message.tensor;
}

void PipelineExecutor::send(const Action& action, at::Tensor tensor) {
  const int64_t to = peer(action);
  std::deque<Message>& sent = peers_[to].sent;
  // A receiver takes messages in order, and the lists end with links that hold link_capacity messages; so all but the
  // newest are done or about to be. Waiting for them bounds memory.
  if (static_cast<int64_t>(sent.size()) >= std::max<int64_t>(2, schedule_->link_capacity)) {
    sent.front().work.wait();
    sent.pop_front();
  }
  RIDGELINE_ASSERT(tensor.defined());
  tensor = tensor.contiguous();
  mesh::Work work = towards(stage_number_, to).send(tensor, to, action.micro_batch);
  sent.push_back({std::move(tensor), std::move(work)});
}

void PipelineExecutor::forward(const Action& action) {
  Piece& current = piece(action.micro_batch, action.chunk);
  const nn::Stage& stage = *chunks_[action.chunk];
  const at::Tensor input = std::exchange(current.input, at::Tensor());
  at::Tensor output =
      schedule_->has_backward ? stage.forward(input, current.flight) : stage.forward_only(input, current.flight.batch);
  if (stage.is_last()) {
    loss_sum_.add_(output);
  } else if (const auto next = chunk_here(action.chunk, 1)) {
    piece(action.micro_batch, *next).input = std::move(output);
  } else {
    current.output = std::move(output);
    return;
  }
  if (!schedule_->has_backward) pieces_.erase({action.micro_batch, action.chunk});
}

void PipelineExecutor::pass_gradient(const Action& action, at::Tensor gradient) {
  if (chunks_[action.chunk]->is_first()) return;
  if (const auto before = chunk_here(action.chunk, -1)) {
    piece(action.micro_batch, *before).output_gradient = std::move(gradient);
  } else {
    piece(action.micro_batch, action.chunk).input_gradient = std::move(gradient);
  }
}

void PipelineExecutor::unit_finished(int64_t unit, const nn::Stage::UnitFinished& finished) {
  // Chunks may end in any order; whoever reduces gradients is told in the order in which their buckets lie.
  held_back_.insert(unit);
  while (!held_back_.empty() && *held_back_.begin() == *unfinished_.begin()) {
    finished(*held_back_.begin());
    unfinished_.erase(unfinished_.begin());
    held_back_.erase(held_back_.begin());
  }
}

void PipelineExecutor::backward(const Action& action, const nn::Stage::UnitFinished& on_unit) {
  Piece& current = piece(action.micro_batch, action.chunk);
  const nn::Stage& stage = *chunks_[action.chunk];
  if (action.kind == ActionKind::backward_weight) {
    stage.backward_weight(current.flight, on_unit);
  } else {
    const at::Tensor gradient = std::exchange(current.output_gradient, at::Tensor());
    pass_gradient(action, action.kind == ActionKind::backward ? stage.backward(gradient, current.flight, on_unit)
                                                              : stage.backward_input(gradient, current.flight));
  }
  const bool over = action.kind != ActionKind::backward_input;
  if (over) current.flight.saved.clear();
  if (over && !current.input_gradient.defined()) pieces_.erase({action.micro_batch, action.chunk});
}

void PipelineExecutor::execute(size_t index, const nn::Stage::UnitFinished& finished) {
  const Action& action = schedule_->actions[stage_number_][index];
  const nn::Stage::UnitFinished on_unit = [&](int64_t unit) {
    if (index == last_backward_[action.chunk]) unit_finished(unit, finished);
  };
  switch (action.kind) {
    case ActionKind::receive_activation: {
      at::Tensor tensor = take_received(action);
      piece(action.micro_batch, action.chunk).input = std::move(tensor);
      break;
    }
    case ActionKind::receive_gradient: {
      at::Tensor tensor = take_received(action);
      piece(action.micro_batch, action.chunk).output_gradient = std::move(tensor);
      break;
    }
    case ActionKind::forward:
      forward(action);
      break;
    case ActionKind::backward:
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
      backward(action, on_unit);
      break;
    case ActionKind::send_activation:
      send(action, std::exchange(piece(action.micro_batch, action.chunk).output, at::Tensor()));
      if (!schedule_->has_backward) pieces_.erase({action.micro_batch, action.chunk});
      break;
    case ActionKind::send_gradient: {
      Piece& current = piece(action.micro_batch, action.chunk);
      send(action, std::exchange(current.input_gradient, at::Tensor()));
      if (current.flight.saved.empty()) pieces_.erase({action.micro_batch, action.chunk});
      break;
    }
  }
}

}  // namespace ridgeline::train
