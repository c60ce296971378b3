#include "mesh/mesh.h"

#include <ATen/ATen.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "mesh/failure.h"

namespace ridgeline::mesh {
namespace {

BackEndKind automatic_on_cpu(const GroupSetup& setup) {
  const char* value = std::getenv("RIDGELINE_COLLECTIVES");
  const std::string wish = value == nullptr ? "" : value;
  if (wish == "gloo") return BackEndKind::gloo;
  if (wish == "shared_memory") return BackEndKind::shared_memory;
  if (!wish.empty()) {
    throw InputError("RIDGELINE_COLLECTIVES={}: expected gloo or shared_memory, or leave it unset", wish);
  }
  return setup.one_machine ? BackEndKind::automatic : BackEndKind::gloo;
}

std::shared_ptr<BackEnd> make_on_cpu(const GroupSetup& setup, BackEndKind kind) {
  if (kind == BackEndKind::gloo) return make_gloo(setup);
  std::string fault;
  if (auto back_end = make_shared_memory(setup, fault)) return back_end;
  if (kind == BackEndKind::shared_memory) {
    throw Failure(
        "group \"{}\" of {} ranks cannot share memory: {}. Run all ranks on one machine and, if in containers, in one "
        "of "
        "them, or leave RIDGELINE_COLLECTIVES unset",
        setup.name, setup.members.size(), fault);
  }
  if (setup.rank == 0) {
    spdlog::warn("group \"{}\" uses Gloo, which is slower: its ranks cannot share memory: {}", setup.name, fault);
  }
  return make_gloo(setup);
}

std::shared_ptr<BackEnd> make_back_end(BackEndKind kind, const GroupSetup& setup) {
  switch (kind) {
    case BackEndKind::gloo:
      return make_gloo(setup);
    case BackEndKind::shared_memory:
      return make_on_cpu(setup, kind);
    case BackEndKind::nccl:
      return make_nccl(setup);
    case BackEndKind::fake:
      return make_fake(setup.rank, static_cast<int64_t>(setup.members.size()));
    case BackEndKind::automatic:
      break;
  }
  switch (setup.device.kind()) {
    case platform::DeviceKind::cpu:
      return make_on_cpu(setup, automatic_on_cpu(setup));
    case platform::DeviceKind::cuda:
      return make_nccl(setup);
    case platform::DeviceKind::xpu:
      break;
  }
  throw Failure("group \"{}\" of {} ranks: there is no way yet to talk between ranks on {} ({}); use one rank, or cpu",
                setup.name, setup.members.size(), to_string(setup.device.kind()), setup.device.name());
}

// Names groups alike on all their members and unlike any other group of the job.
std::string unique_name(const PlannedGroup& group) {
  return fmt::format("{}.{}", to_string(group.role), group.members.front());
}

// A first operation of each kind that the group is for, on each connection: NCCL connects only then, and waits for both
// sides.
void touch(const Communicator& communicator, Role role, bool round, const platform::Device& device) {
  at::Tensor one = at::ones({1}, at::TensorOptions().dtype(at::kFloat).device(device.torch()));
  if (role != Role::forward && role != Role::backward) {
    communicator.all_reduce(one).wait();
    if (role == Role::context) communicator.shift(at::empty_like(one), one).wait();
    return;
  }
  const int64_t step = role == Role::forward ? 1 : -1;
  const int64_t from = communicator.rank() - step;
  const int64_t to = communicator.rank() + step;
  if (from >= 0 && from < communicator.size()) communicator.receive(one, from).wait();
  if (to >= 0 && to < communicator.size()) communicator.send(one, to).wait();
  const int64_t last = communicator.size() - 1;
  if (!round || last < 2) return;
  // Forward carries what goes to higher stages, backward what goes to lower ones.
  const int64_t sender = role == Role::forward ? 0 : last, receiver = last - sender;
  if (communicator.rank() == sender) communicator.send(one, receiver).wait();
  if (communicator.rank() == receiver) communicator.receive(one, sender).wait();
}

}  // namespace

Mesh::Mesh(const MeshShape& shape, int64_t rank, std::shared_ptr<Store> store, const platform::Device& device,
           const MeshOptions& options)
    : shape_(shape), rank_(rank), device_(device) {
  RIDGELINE_ASSERT(shape.pipeline > 0 && shape.data > 0 && shape.context > 0 && shape.tensor > 0);
  RIDGELINE_ASSERT(shape.shard_group >= 0 &&
                   (shape.shard_group == 0 || shape.data * shape.context % shape.shard_group == 0));
  RIDGELINE_ASSERT(shape.expert > 0 && shape.ranks() / shape.pipeline % shape.expert == 0);
  RIDGELINE_ASSERT(rank >= 0 && rank < shape.ranks());
  const std::vector<PlannedGroup> plan = plan_groups(shape, rank);
  std::vector<std::shared_ptr<BackEnd>> back_ends;
  for (const PlannedGroup& group : plan) {
    std::shared_ptr<BackEnd> back_end;
    const bool makes_own = group.members.size() > 1 && group.shares_with < 0;
    if (group.shares_with >= 0) back_end = back_ends[static_cast<std::size_t>(group.shares_with)];
    if (makes_own) {
      const GroupSetup setup{unique_name(group), group.members,      group.rank, store, device,
                             options.timeout,    options.one_machine};
      try {
        back_end = make_back_end(options.back_end, setup);
      } catch (const Error&) {
        throw;
      } catch (const std::exception& error) {
        throw CommunicationFailure(
            "rank {} could not connect to the other {} ranks of group \"{}\": {}. A peer may have died, or its host "
            "cannot "
            "be reached (GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME choose the network interface)",
            rank, group.members.size() - 1, setup.name, plain_message(error));
      }
    }
    back_ends.push_back(back_end);
    communicators_.emplace_back(to_string(group.role), group.members, group.rank, std::move(back_end));
    if (makes_own) touch(communicators_.back(), group.role, shape.round, device);
  }
  device.synchronize();
}

Mesh Mesh::dry(const MeshShape& shape, int64_t rank, const platform::Device& device) {
  MeshOptions options;
  options.back_end = BackEndKind::fake;
  return Mesh(shape, rank, nullptr, device, options);
}

const Communicator& Mesh::group(Axis axis) const {
  switch (axis) {
    case Axis::pipeline:
      return communicator(Role::pipeline);
    case Axis::data:
      return communicator(Role::data);
    case Axis::context:
      return communicator(Role::context);
    case Axis::tensor:
      return communicator(Role::tensor);
  }
  throw InternalError("axis {}", static_cast<int>(axis));
}

void Mesh::observe(Observer* observer) const {
  for (const Communicator& communicator : communicators_) communicator.observe(observer);
}

}  // namespace ridgeline::mesh
