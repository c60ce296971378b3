#include "mesh/back_end.h"

#include <utility>

namespace ridgeline::mesh {
namespace {

// Two transfers as one.
class Pair final : public Transfer {
 public:
  Pair(std::shared_ptr<Transfer> first, std::shared_ptr<Transfer> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  void wait() override {
    if (first_) first_->wait();
    if (second_) second_->wait();
  }
  bool done() override { return (!first_ || first_->done()) && (!second_ || second_->done()); }

 private:
  std::shared_ptr<Transfer> first_, second_;
};

}  // namespace

// Where messages go both ways at once, whoever was posted first.
std::shared_ptr<Transfer> BackEnd::exchange(at::Tensor out, int64_t from, at::Tensor in, int64_t to) {
  std::shared_ptr<Transfer> incoming = receive(std::move(out), from, 0);
  return std::make_shared<Pair>(std::move(incoming), send(std::move(in), to, 0));
}

}  // namespace ridgeline::mesh
