// C10dBackEnd: any c10d::Backend (Gloo, NCCL, RCCL) as our BackEnd. How each is constructed differs, how they are
// called does not.
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>

#include "mesh/back_end.h"

namespace ridgeline::mesh {

class C10dBackEnd final : public BackEnd {
 public:
  C10dBackEnd(c10::intrusive_ptr<c10d::Backend> backend, at::Device device)
      : backend_(std::move(backend)), device_(device) {}

  std::string name() const override { return backend_->getBackendName(); }
  std::shared_ptr<Transfer> all_reduce(at::Tensor tensor, Reduction reduction) override;
  std::shared_ptr<Transfer> all_gather(at::Tensor out, at::Tensor in) override;
  std::shared_ptr<Transfer> reduce_scatter(at::Tensor out, at::Tensor in) override;
  std::shared_ptr<Transfer> broadcast(at::Tensor tensor, int64_t root) override;
  std::shared_ptr<Transfer> all_to_all(at::Tensor out, at::Tensor in) override;
  std::shared_ptr<Transfer> all_to_all_uneven(at::Tensor out, std::vector<int64_t> out_rows, at::Tensor in,
                                              std::vector<int64_t> in_rows) override;
  std::shared_ptr<Transfer> send(at::Tensor tensor, int64_t peer, int64_t tag) override;
  std::shared_ptr<Transfer> receive(at::Tensor tensor, int64_t peer, int64_t tag) override;
  std::shared_ptr<Transfer> exchange(at::Tensor out, int64_t from, at::Tensor in, int64_t to) override;
  std::shared_ptr<Transfer> barrier() override;

 private:
  c10::intrusive_ptr<c10d::Backend> backend_;
  at::Device device_;
};

// The store of a group's own keys.
c10::intrusive_ptr<c10d::Store> group_store(const GroupSetup& setup);
std::chrono::milliseconds group_timeout(const GroupSetup& setup);

}  // namespace ridgeline::mesh
