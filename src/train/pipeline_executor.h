// PipelineExecutor: walks the action list of its stage (schedule/actions.h) with tensors.
//
// A stage may hold several chunks of the model; what it keeps is known by micro-batch and chunk. Where chunks that
// follow one another lie on this stage, tensors are handed over without a message.
//
// Sends are posted and kept until they are done; the next receive from each peer is posted as soon as the last one has
// arrived, so that it overlaps computation. Messages to higher stages and to lower ones travel on communicators of
// their own: what two stages send each other on one connection then goes one way only, in the order of both lists, as a
// back end without tags needs it.
#pragma once

#include <ATen/ATen.h>

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "mesh/mesh.h"
#include "nn/stage.h"
#include "schedule/actions.h"

namespace ridgeline::train {

class PipelineExecutor {
 public:
  using BatchOf = std::function<nn::MicroBatch(int64_t micro_batch)>;
  using ActionDone = std::function<void(const schedule::Action& action)>;

  // `chunks`: of this rank's stage, in the order of the schedule's table.
  PipelineExecutor(std::vector<const nn::Stage*> chunks, const mesh::Mesh& mesh, at::ScalarType compute,
                   at::Device device)
      : chunks_(std::move(chunks)), mesh_(mesh), options_(at::TensorOptions().dtype(compute).device(device)) {}

  // Executes the whole schedule. Returns the sum of token losses of all micro-batches as a double tensor of one element
  // on the device: on the stage of the head the sum, elsewhere zero. `finished` is called once for each unit of the
  // stage when its gradients are final, the last unit of the model first.
  at::Tensor run(const schedule::Schedule& schedule, const BatchOf& batch_of, const nn::Stage::UnitFinished& finished);

  // Called after each action from now on, for whoever measures.
  void observe(ActionDone done) { action_done_ = std::move(done); }

 private:
  struct Message {
    at::Tensor tensor;
    mesh::Work work;
  };
  // To and from one other stage.
  struct Peer {
    std::vector<schedule::Action> receives;  // in order of the list
    size_t next_receive = 0;                 // of `receives`, not posted yet
    std::deque<Message> received;            // posted, in order
    std::deque<Message> sent;
  };
  // One micro-batch on one chunk.
  struct Piece {
    nn::InFlight flight;
    at::Tensor input, output, output_gradient, input_gradient;  // between compute and messages
  };

  void start(const schedule::Schedule& schedule, const BatchOf& batch_of);
  void execute(size_t index, const nn::Stage::UnitFinished& finished);
  void forward(const schedule::Action& action);
  void backward(const schedule::Action& action, const nn::Stage::UnitFinished& on_unit);
  void pass_gradient(const schedule::Action& action, at::Tensor gradient);
  void unit_finished(int64_t unit, const nn::Stage::UnitFinished& finished);
  void post_receive(int64_t from);
  at::Tensor take_received(const schedule::Action& action);
  void send(const schedule::Action& action, at::Tensor tensor);
  Piece& piece(int64_t micro_batch, int64_t chunk);
  // Where the neighbour of `chunk` in model order lies, if on this stage.
  std::optional<int64_t> chunk_here(int64_t chunk, int64_t step) const;
  int64_t peer(const schedule::Action& action) const;
  const mesh::Communicator& towards(int64_t from, int64_t to) const;

  std::vector<const nn::Stage*> chunks_;
  const mesh::Mesh& mesh_;
  at::TensorOptions options_;
  ActionDone action_done_;

  // Of the run under way.
  const schedule::Schedule* schedule_ = nullptr;
  int64_t stage_number_ = 0;
  BatchOf batch_of_;
  std::vector<size_t> last_backward_;  // [chunk] index in the list of the action after which its gradients are final
  std::map<int64_t, Peer> peers_;
  std::map<std::pair<int64_t, int64_t>, Piece> pieces_;       // by micro-batch and chunk
  std::set<int64_t, std::greater<>> unfinished_, held_back_;  // units
  at::Tensor loss_sum_;
};

}  // namespace ridgeline::train
