#include "mesh/c10d_back_end.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "core/error.h"
#include "mesh/c10d_store.h"

namespace ridgeline::mesh {
namespace {

class C10dTransfer final : public Transfer {
 public:
  explicit C10dTransfer(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
  void wait() override {
    if (!work_->wait()) throw Failure("it was aborted");
  }
  bool done() override { return work_->isCompleted(); }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

std::shared_ptr<Transfer> transfer(c10::intrusive_ptr<c10d::Work> work) {
  return std::make_shared<C10dTransfer>(std::move(work));
}

}  // namespace

std::shared_ptr<Transfer> C10dBackEnd::all_reduce(at::Tensor tensor, Reduction reduction) {
  c10d::AllreduceOptions options;
  options.reduceOp = reduction == Reduction::sum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return transfer(backend_->allreduce(tensors, options));
}

// One dimension: c10d's classes differ in which shapes of input and output they accept.
std::shared_ptr<Transfer> C10dBackEnd::all_gather(at::Tensor out, at::Tensor in) {
  out = out.view(-1);
  in = in.view(-1);
  return transfer(backend_->_allgather_base(out, in));
}

std::shared_ptr<Transfer> C10dBackEnd::reduce_scatter(at::Tensor out, at::Tensor in) {
  out = out.view(-1);
  in = in.view(-1);
  return transfer(backend_->_reduce_scatter_base(out, in));
}

std::shared_ptr<Transfer> C10dBackEnd::broadcast(at::Tensor tensor, int64_t root) {
  c10d::BroadcastOptions options;
  options.rootRank = root;
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return transfer(backend_->broadcast(tensors, options));
}

std::shared_ptr<Transfer> C10dBackEnd::all_to_all(at::Tensor out, at::Tensor in) {
  out = out.view(-1);
  in = in.view(-1);
  std::vector<int64_t> equal_parts;  // empty means equal
  std::vector<int64_t> equal_parts_too;
  return transfer(backend_->alltoall_base(out, in, equal_parts, equal_parts_too));
}

std::shared_ptr<Transfer> C10dBackEnd::all_to_all_uneven(at::Tensor out, std::vector<int64_t> out_rows, at::Tensor in,
                                                         std::vector<int64_t> in_rows) {
  return transfer(backend_->alltoall_base(out, in, out_rows, in_rows));
}

std::shared_ptr<Transfer> C10dBackEnd::send(at::Tensor tensor, int64_t peer, int64_t tag) {
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return transfer(backend_->send(tensors, static_cast<int>(peer), static_cast<int>(tag)));
}

std::shared_ptr<Transfer> C10dBackEnd::receive(at::Tensor tensor, int64_t peer, int64_t tag) {
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return transfer(backend_->recv(tensors, static_cast<int>(peer), static_cast<int>(tag)));
}

// NCCL runs the operations of two ranks in order: both sending first would wait for ever, so the two go as one.
std::shared_ptr<Transfer> C10dBackEnd::exchange(at::Tensor out, int64_t from, at::Tensor in, int64_t to) {
  if (!backend_->supportsCoalescing()) return BackEnd::exchange(std::move(out), from, std::move(in), to);
  std::vector<at::Tensor> sent{std::move(in)}, received{std::move(out)};
  backend_->startCoalescing();
  backend_->send(sent, static_cast<int>(to), 0);
  backend_->recv(received, static_cast<int>(from), 0);
  return transfer(backend_->endCoalescing());
}

std::shared_ptr<Transfer> C10dBackEnd::barrier() {
  c10d::BarrierOptions options;
  if (!device_.is_cpu()) options.device = device_;
  return transfer(backend_->barrier(options));
}

c10::intrusive_ptr<c10d::Store> group_store(const GroupSetup& setup) {
  return c10::make_intrusive<c10d::PrefixStore>("group/" + setup.name, setup.store->state().store);
}

std::chrono::milliseconds group_timeout(const GroupSetup& setup) {
  return std::chrono::milliseconds(static_cast<int64_t>(setup.timeout * 1000));
}

}  // namespace ridgeline::mesh
