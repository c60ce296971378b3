// Mesh: this rank's place among all ranks, and the groups that it talks in.
//
//   Mesh mesh(MeshShape::of(strategy), environment.rank, store, device);
//   mesh.group(Axis::data).all_reduce(gradients).wait();
//   mesh.forward_pipeline().send(activations, mesh.coordinate(Axis::pipeline) + 1).wait();
//
// All ranks build it together: every group is created in one global order (mesh/layout.h) and used once before the
// constructor returns, so that connections and their memory exist before training starts, and a rank that cannot be
// reached shows here. Ranks in a group count along its axis, so a rank's number in group(axis) is its coordinate; but
// group(Axis::data) has all copies of parameters in it, the context axis of each data coordinate too.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mesh/communicator.h"
#include "mesh/layout.h"
#include "mesh/store.h"
#include "platform/device.h"

namespace ridgeline::mesh {

struct MeshOptions {
  // The environment variable RIDGELINE_COLLECTIVES, "gloo" or "shared_memory", decides for automatic on the CPU.
  BackEndKind back_end = BackEndKind::automatic;
  double timeout = 600.0;    // seconds before an operation that does not end is an error
  bool one_machine = false;  // all ranks run on this machine
};

class Mesh {
 public:
  // Throws CommunicationFailure where a group cannot be made, Failure where the device has no back end in this build.
  Mesh(const MeshShape& shape, int64_t rank, std::shared_ptr<Store> store, const platform::Device& device,
       const MeshOptions& options = {});
  // One rank of a mesh whose other ranks do not exist (BackEndKind::fake).
  static Mesh dry(const MeshShape& shape, int64_t rank, const platform::Device& device);

  const MeshShape& shape() const { return shape_; }
  int64_t rank() const { return rank_; }
  const platform::Device& device() const { return device_; }
  int64_t size(Axis axis) const { return shape_.size(axis); }
  int64_t coordinate(Axis axis) const { return shape_.coordinate(axis, rank_); }

  const Communicator& world() const { return communicator(Role::world); }
  const Communicator& group(Axis axis) const;
  // group(Axis::data) in two: ranks that divide flat buffers among them, and those that hold the same shards.
  const Communicator& shard() const { return communicator(Role::shard); }
  const Communicator& replicas() const { return communicator(Role::replicas); }
  // The ranks that hold the experts of a layer, this rank's among them.
  const Communicator& expert() const { return communicator(Role::expert); }
  // Who holds the same parameters, cut over pipeline and tensor axis (and experts) alike: all of them, and the two parts
  // of the axis that they make.
  struct Holders {
    const Communicator& all;
    const Communicator& shard;
    const Communicator& replicas;
  };
  Holders holders(bool of_experts) const {
    if (!of_experts) return {group(Axis::data), shard(), replicas()};
    return {communicator(Role::expert_data), communicator(Role::expert_shard), communicator(Role::expert_replicas)};
  }
  // For messages between stages only: those to higher stages go by one, those to lower stages by the other. Where the
  // model has one chunk a stage, these are activations and gradients.
  const Communicator& forward_pipeline() const { return communicator(Role::forward); }
  const Communicator& backward_pipeline() const { return communicator(Role::backward); }
  // First and last stage; size 1 on the stages between and where there is one stage.
  const Communicator& tied() const { return communicator(Role::tied); }
  const Communicator& communicator(Role role) const { return communicators_[static_cast<std::size_t>(role)]; }

  // Tells `observer` of all operations from now on; nullptr takes it off. It must live until then.
  void observe(Observer* observer) const;

 private:
  MeshShape shape_;
  int64_t rank_;
  platform::Device device_;
  std::vector<Communicator> communicators_;  // by Role
};

}  // namespace ridgeline::mesh
