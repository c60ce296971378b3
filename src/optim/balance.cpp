#include "optim/balance.h"

#include <ATen/ATen.h>

namespace ridgeline::optim {

void balance_step(const at::Tensor& master, const at::Tensor& counts, const at::Tensor& value,
                  std::span<const BalanceRange> ranges, const Balance& balance) {
  for (const BalanceRange& range : ranges) {
    const auto part = [&](const at::Tensor& tensor) { return tensor.narrow(0, range.begin, range.end - range.begin); };
    const at::Tensor wanting = part(counts).neg().add_(balance.even_share).sign_();
    part(master).add_(wanting, balance.rate);
    if (!value.is_same(master)) part(value).copy_(part(master));
  }
}

}  // namespace ridgeline::optim
