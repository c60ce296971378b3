// PipelineExecutor: walks the action list of its stage (schedule/actions.h) with tensors.
//
// Sends are posted and kept until they are done; the next receive of each direction is posted as soon as the last one has
// arrived, so that it overlaps computation. Activations and gradients travel on communicators of their own.
#pragma once

#include <ATen/ATen.h>

#include <deque>
#include <functional>
#include <map>

#include "mesh/mesh.h"
#include "nn/stage.h"
#include "schedule/actions.h"

namespace ridgeline::train {

class PipelineExecutor {
 public:
  using BatchOf = std::function<nn::MicroBatch(int64_t micro_batch)>;

  PipelineExecutor(const nn::Stage& stage, const mesh::Mesh& mesh, at::ScalarType compute, at::Device device)
      : stage_(stage), mesh_(mesh), options_(at::TensorOptions().dtype(compute).device(device)) {}

  // Executes the whole schedule. Returns the sum of token losses of all micro-batches as a double tensor of one element on
  // the device: on the last stage the sum, elsewhere zero. `finished` is called for the units of the stage in the backward
  // of the last micro-batch, when their gradients are final.
  at::Tensor run(const schedule::Schedule& schedule, const BatchOf& batch_of, const nn::Stage::UnitFinished& finished);

 private:
  struct Message {
    at::Tensor tensor;
    mesh::Work work;
  };
  // One direction of travel: activations onwards, gradients backwards.
  struct Link {
    const mesh::Communicator* communicator = nullptr;
    std::vector<schedule::Action> receives;  // in order of the list
    size_t next_receive = 0;                 // of `receives`, not posted yet
    std::deque<Message> received;            // posted, in order
    std::deque<Message> sent;
  };

  void start(const schedule::Schedule& schedule, const BatchOf& batch_of);
  void execute(const schedule::Action& action, const nn::Stage::UnitFinished& finished);
  void forward(int64_t micro_batch);
  void post_receive(Link& link);
  at::Tensor take_received(Link& link);
  void send(Link& link, const schedule::Action& action, at::Tensor tensor);
  nn::InFlight& in_flight(int64_t micro_batch);

  const nn::Stage& stage_;
  const mesh::Mesh& mesh_;
  at::TensorOptions options_;

  // Of the run under way.
  const schedule::Schedule* schedule_ = nullptr;
  int64_t stage_number_ = 0;
  BatchOf batch_of_;
  int64_t last_backward_ = -1;  // micro-batch whose backward is the last of the list
  Link activations_, gradients_;
  std::map<int64_t, nn::InFlight> in_flight_;
  at::Tensor input_, output_, output_gradient_, input_gradient_;  // between a compute and its messages
  at::Tensor loss_sum_;
};

}  // namespace ridgeline::train
