// Communicator: collectives and messages among a group of ranks. All operations work on tensors that the caller made,
// are asynchronous, and return a Work to wait for:
//
//   Work work = mesh.group(Axis::data).all_reduce(gradients);
//   ... compute ...
//   work.wait();
//
// All ranks of a group call its operations in the same order with equal sizes and types. Tensors are contiguous, on the
// group's device, of fp16, bf16, fp32, fp64, int32, int64 or uint8, and are left alone until the Work was waited for; a
// Work that is never waited for is a fault. A group of one rank needs no back end and is done at once; it may be used
// exactly like a larger one, except that there is nobody to send to.
//
// Errors: a transfer that fails, because a peer died or the timeout passed, throws CommunicationFailure from the call
// or from wait(), with ranks, group, operation and bytes. Wrong tensors are InternalError.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mesh/back_end.h"
#include "mesh/observer.h"

namespace ridgeline::mesh {

// Handle of one operation; keeps its tensors alive. Default constructed, and after wait(), it is done.
class [[nodiscard]] Work {
 public:
  struct Pending;
  Work() = default;
  explicit Work(std::shared_ptr<Pending> pending) : pending_(std::move(pending)) {}

  // On the CPU returns when the result is there; on an accelerator when the current stream is made to wait for it.
  void wait();
  bool done() const;

 private:
  std::shared_ptr<Pending> pending_;
};

class Communicator {
 public:
  // `members` are ranks of the mesh, ascending; `rank` is the place of this one. Without a back end there must be one.
  Communicator(std::string name, std::vector<int64_t> members, int64_t rank, std::shared_ptr<BackEnd> back_end);
  static Communicator make_single(std::string name, int64_t world_rank = 0);

  int64_t rank() const;
  int64_t size() const;
  const std::string& name() const;
  const std::vector<int64_t>& members() const;  // ranks of the mesh
  std::string back_end() const;                 // name of what carries its messages; "none" where it is one rank

  // In place.
  Work all_reduce(const at::Tensor& tensor, Reduction reduction = Reduction::sum) const;
  // `out` holds the ranks' `in` one after another along dimension 0.
  Work all_gather(const at::Tensor& out, const at::Tensor& in) const;
  // `out` is this rank's part, along dimension 0, of the sum of all `in`.
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in) const;
  Work broadcast(const at::Tensor& tensor, int64_t root) const;
  // Part i of `in` along dimension 0 goes to rank i; part i of `out` comes from it.
  Work all_to_all(const at::Tensor& out, const at::Tensor& in) const;
  // The same with parts of any size: in_rows[i] rows of `in` along dimension 0 go to rank i, out_rows[i] of `out` come from
  // it. Rows are of one size on all ranks. Its message is `in`.
  Work all_to_all(const at::Tensor& out, const std::vector<int64_t>& out_rows, const at::Tensor& in,
                  const std::vector<int64_t>& in_rows) const;
  // Messages between two ranks with equal tags keep their order. NCCL has no tags: there, all messages between two
  // ranks keep their order, so send and receive in one order.
  Work send(const at::Tensor& tensor, int64_t peer, int64_t tag = 0) const;
  Work receive(const at::Tensor& tensor, int64_t peer, int64_t tag = 0) const;
  // `in` goes to the next rank, `out` comes from the one before, round the group: one operation, so that no two ranks
  // can wait for each other's receive.
  Work shift(const at::Tensor& out, const at::Tensor& in) const;
  Work barrier() const;

  // The observer must live as long as the communicator or be taken off by observe(nullptr), while nothing is in flight.
  void observe(Observer* observer) const;

  struct Group;  // communicator.cpp

 private:
  std::shared_ptr<Group> group_;
};

}  // namespace ridgeline::mesh
