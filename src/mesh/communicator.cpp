#include "mesh/communicator.h"

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <atomic>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "mesh/failure.h"

namespace ridgeline::mesh {

struct Communicator::Group {
  std::string name;
  std::vector<int64_t> members;
  int64_t rank = 0;
  std::shared_ptr<BackEnd> back_end;
  std::atomic<Observer*> observer{nullptr};
  std::atomic<uint64_t> operations{0};

  int64_t size() const { return static_cast<int64_t>(members.size()); }
};

struct Work::Pending {
  std::shared_ptr<const Communicator::Group> group;
  OperationRecord record;
  std::vector<at::Tensor> tensors;  // alive until the transfer is over
  std::shared_ptr<Transfer> transfer;
};

namespace {

using Group = Communicator::Group;
using Clock = OperationRecord::Clock;

void require_tensor(const Group& group, Operation operation, const at::Tensor& tensor) {
  const char* wrong = nullptr;
  if (!tensor.defined()) {
    wrong = "an undefined tensor";
  } else if (!tensor.is_contiguous()) {
    wrong = "a tensor that is not contiguous";
  } else {
    switch (tensor.scalar_type()) {
      case at::kHalf:
      case at::kBFloat16:
      case at::kFloat:
      case at::kDouble:
      case at::kInt:
      case at::kLong:
      case at::kByte:
        return;
      default:
        wrong = "a tensor of a type that is not carried";
    }
  }
  throw InternalError("{} in group \"{}\" was given {}", to_string(operation), group.name, wrong);
}

void require(const Group& group, Operation operation, bool condition, const char* what) {
  if (condition) return;
  throw InternalError("{} in group \"{}\" of {} ranks: {}", to_string(operation), group.name, group.size(), what);
}

void require_pair(const Group& group, Operation operation, const at::Tensor& large, const at::Tensor& small) {
  require_tensor(group, operation, large);
  require_tensor(group, operation, small);
  require(group, operation, large.scalar_type() == small.scalar_type(), "the types of input and output differ");
  require(group, operation, large.numel() == small.numel() * group.size(),
          "the larger tensor must have as many elements as the smaller one times the number of ranks");
}

std::string peer_text(const Group& group, const OperationRecord& record) {
  if (record.operation == Operation::send || record.operation == Operation::shift) {
    return fmt::format(" to rank {}", group.members[static_cast<std::size_t>(record.peer)]);
  }
  if (record.operation == Operation::receive || record.operation == Operation::broadcast) {
    return fmt::format(" from rank {}", group.members[static_cast<std::size_t>(record.peer)]);
  }
  return "";
}

[[noreturn]] void fail(const Group& group, const OperationRecord& record, const std::exception& error) {
  throw CommunicationFailure(
      "{} of {} bytes ({} {}){} in group \"{}\" (rank {}, number {} of {}) failed after {:.1f} s: {}. A peer may have "
      "died or "
      "stand still: look for the first error of another rank",
      to_string(record.operation), record.bytes, record.elements, c10::toString(record.type), peer_text(group, record),
      group.name, group.members[static_cast<std::size_t>(group.rank)], group.rank, group.size(),
      std::chrono::duration<double>(Clock::now() - record.issued).count(), plain_message(error));
}

// Starts an operation whose message is `message`, with `start` giving the transfer.
template <typename Start>
Work run(const std::shared_ptr<Group>& group, Operation operation, const at::Tensor& message, int64_t peer,
         std::vector<at::Tensor> tensors, Start start, bool uneven = false) {
  auto pending = std::make_shared<Work::Pending>();
  OperationRecord& record = pending->record;
  record.operation = operation;
  record.group = group->name;
  record.group_size = group->size();
  record.peer = peer;
  record.sequence = group->operations.fetch_add(1);
  if (message.defined()) {
    record.elements = message.numel();
    record.bytes = message.numel() * static_cast<int64_t>(message.element_size());
    record.type = message.scalar_type();
  }
  pending->group = group;
  pending->tensors = std::move(tensors);
  record.issued = Clock::now();
  if (Observer* observer = group->observer.load()) observer->started(record);
  try {
    // Nothing to move: all ranks see that alike unless parts are uneven, and back ends differ in what they make of it.
    if (operation == Operation::barrier || uneven || record.elements > 0) pending->transfer = start(*group->back_end);
  } catch (const std::exception& error) {
    fail(*group, record, error);
  }
  return Work(std::move(pending));
}

void require_peer(const Group& group, Operation operation, int64_t peer) {
  require(group, operation, peer >= 0 && peer < group.size(), "the peer is no rank of the group");
}

}  // namespace

void Work::wait() {
  if (!pending_) return;
  const std::shared_ptr<Pending> pending = std::exchange(pending_, nullptr);
  OperationRecord& record = pending->record;
  record.waited = Clock::now();
  if (Observer* observer = pending->group->observer.load()) observer->waiting(record);
  try {
    if (pending->transfer) pending->transfer->wait();
  } catch (const std::exception& error) {
    fail(*pending->group, record, error);
  }
  record.done = Clock::now();
  if (Observer* observer = pending->group->observer.load()) observer->finished(record);
}

bool Work::done() const { return !pending_ || !pending_->transfer || pending_->transfer->done(); }

Communicator::Communicator(std::string name, std::vector<int64_t> members, int64_t rank,
                           std::shared_ptr<BackEnd> back_end)
    : group_(std::make_shared<Group>()) {
  RIDGELINE_ASSERT(rank >= 0 && rank < static_cast<int64_t>(members.size()));
  RIDGELINE_ASSERT(back_end != nullptr || members.size() == 1);
  group_->name = std::move(name);
  group_->members = std::move(members);
  group_->rank = rank;
  group_->back_end = std::move(back_end);
}

Communicator Communicator::make_single(std::string name, int64_t world_rank) {
  return Communicator(std::move(name), {world_rank}, 0, nullptr);
}

int64_t Communicator::rank() const { return group_->rank; }
int64_t Communicator::size() const { return group_->size(); }
const std::string& Communicator::name() const { return group_->name; }
const std::vector<int64_t>& Communicator::members() const { return group_->members; }
std::string Communicator::back_end() const { return group_->back_end ? group_->back_end->name() : "none"; }
void Communicator::observe(Observer* observer) const { group_->observer = observer; }

Work Communicator::all_reduce(const at::Tensor& tensor, Reduction reduction) const {
  require_tensor(*group_, Operation::all_reduce, tensor);
  if (!group_->back_end) return {};
  return run(group_, Operation::all_reduce, tensor, -1, {tensor},
             [&](BackEnd& back_end) { return back_end.all_reduce(tensor, reduction); });
}

Work Communicator::all_gather(const at::Tensor& out, const at::Tensor& in) const {
  require_pair(*group_, Operation::all_gather, out, in);
  if (!group_->back_end) {
    out.view(-1).copy_(in.view(-1));
    return {};
  }
  return run(group_, Operation::all_gather, out, -1, {out, in},
             [&](BackEnd& back_end) { return back_end.all_gather(out, in); });
}

Work Communicator::reduce_scatter(const at::Tensor& out, const at::Tensor& in) const {
  require_pair(*group_, Operation::reduce_scatter, in, out);
  if (!group_->back_end) {
    out.view(-1).copy_(in.view(-1));
    return {};
  }
  return run(group_, Operation::reduce_scatter, in, -1, {out, in},
             [&](BackEnd& back_end) { return back_end.reduce_scatter(out, in); });
}

Work Communicator::broadcast(const at::Tensor& tensor, int64_t root) const {
  require_tensor(*group_, Operation::broadcast, tensor);
  require_peer(*group_, Operation::broadcast, root);
  if (!group_->back_end) return {};
  return run(group_, Operation::broadcast, tensor, root, {tensor},
             [&](BackEnd& back_end) { return back_end.broadcast(tensor, root); });
}

Work Communicator::all_to_all(const at::Tensor& out, const at::Tensor& in) const {
  require_tensor(*group_, Operation::all_to_all, out);
  require_tensor(*group_, Operation::all_to_all, in);
  require(*group_, Operation::all_to_all, out.scalar_type() == in.scalar_type() && out.numel() == in.numel(),
          "input and output differ in size or type");
  require(*group_, Operation::all_to_all, in.numel() % size() == 0, "the elements do not divide by the ranks");
  if (!group_->back_end) {
    out.view(-1).copy_(in.view(-1));
    return {};
  }
  return run(group_, Operation::all_to_all, in, -1, {out, in},
             [&](BackEnd& back_end) { return back_end.all_to_all(out, in); });
}

Work Communicator::all_to_all(const at::Tensor& out, const std::vector<int64_t>& out_rows, const at::Tensor& in,
                              const std::vector<int64_t>& in_rows) const {
  constexpr Operation kind = Operation::all_to_all;
  require_tensor(*group_, kind, out);
  require_tensor(*group_, kind, in);
  require(*group_, kind, out.scalar_type() == in.scalar_type(), "input and output differ in type");
  require(*group_, kind, out_rows.size() == group_->members.size() && in_rows.size() == group_->members.size(),
          "there must be one number of rows for each rank");
  const auto sum = [](const std::vector<int64_t>& rows) { return std::accumulate(rows.begin(), rows.end(), int64_t{0}); };
  require(*group_, kind, sum(out_rows) == out.size(0) && sum(in_rows) == in.size(0), "the rows do not add up");
  if (!group_->back_end) {
    out.copy_(in);
    return {};
  }
  return run(
      group_, kind, in, -1, {out, in},
      [&](BackEnd& back_end) { return back_end.all_to_all_uneven(out, out_rows, in, in_rows); }, /*uneven=*/true);
}

Work Communicator::send(const at::Tensor& tensor, int64_t peer, int64_t tag) const {
  require_tensor(*group_, Operation::send, tensor);
  require_peer(*group_, Operation::send, peer);
  require(*group_, Operation::send, peer != rank(), "a rank cannot send to itself");
  return run(group_, Operation::send, tensor, peer, {tensor},
             [&](BackEnd& back_end) { return back_end.send(tensor, peer, tag); });
}

Work Communicator::receive(const at::Tensor& tensor, int64_t peer, int64_t tag) const {
  require_tensor(*group_, Operation::receive, tensor);
  require_peer(*group_, Operation::receive, peer);
  require(*group_, Operation::receive, peer != rank(), "a rank cannot receive from itself");
  return run(group_, Operation::receive, tensor, peer, {tensor},
             [&](BackEnd& back_end) { return back_end.receive(tensor, peer, tag); });
}

Work Communicator::shift(const at::Tensor& out, const at::Tensor& in) const {
  require_tensor(*group_, Operation::shift, out);
  require_tensor(*group_, Operation::shift, in);
  require(*group_, Operation::shift, out.scalar_type() == in.scalar_type() && out.numel() == in.numel(),
          "input and output differ in size or type");
  if (!group_->back_end) {
    out.view(-1).copy_(in.view(-1));
    return {};
  }
  const int64_t next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  return run(group_, Operation::shift, in, next, {out, in},
             [&](BackEnd& back_end) { return back_end.exchange(out, before, in, next); });
}

Work Communicator::barrier() const {
  if (!group_->back_end) return {};
  return run(group_, Operation::barrier, {}, -1, {}, [&](BackEnd& back_end) { return back_end.barrier(); });
}

}  // namespace ridgeline::mesh
