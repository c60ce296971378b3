// Fake: no other rank exists. Results are finite and of the right shape, not right.
#include <ATen/ATen.h>

#include "mesh/back_end.h"

namespace ridgeline::mesh {
namespace {

class FakeBackEnd final : public BackEnd {
 public:
  FakeBackEnd(int64_t rank, int64_t size) : rank_(rank), size_(size) {}

  std::string name() const override { return "fake"; }
  std::shared_ptr<Transfer> all_reduce(at::Tensor tensor, Reduction reduction) override { return nullptr; }
  std::shared_ptr<Transfer> all_gather(at::Tensor out, at::Tensor in) override {
    out.view({size_, -1}).copy_(in.view({1, -1}));
    return nullptr;
  }
  std::shared_ptr<Transfer> reduce_scatter(at::Tensor out, at::Tensor in) override {
    out.view(-1).copy_(in.view({size_, -1})[rank_]);
    return nullptr;
  }
  std::shared_ptr<Transfer> broadcast(at::Tensor tensor, int64_t root) override { return nullptr; }
  std::shared_ptr<Transfer> all_to_all(at::Tensor out, at::Tensor in) override {
    out.view(-1).copy_(in.view(-1));
    return nullptr;
  }
  std::shared_ptr<Transfer> all_to_all_uneven(at::Tensor out, std::vector<int64_t> out_rows, at::Tensor in,
                                              std::vector<int64_t> in_rows) override {
    out.zero_();
    return nullptr;
  }
  std::shared_ptr<Transfer> send(at::Tensor tensor, int64_t peer, int64_t tag) override { return nullptr; }
  std::shared_ptr<Transfer> receive(at::Tensor tensor, int64_t peer, int64_t tag) override {
    tensor.zero_();
    return nullptr;
  }
  std::shared_ptr<Transfer> barrier() override { return nullptr; }

 private:
  int64_t rank_;
  int64_t size_;
};

}  // namespace

std::shared_ptr<BackEnd> make_fake(int64_t rank, int64_t size) { return std::make_shared<FakeBackEnd>(rank, size); }

}  // namespace ridgeline::mesh
