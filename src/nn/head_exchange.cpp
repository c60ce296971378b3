#include "nn/head_exchange.h"

namespace ridgeline::nn {
namespace {

int64_t sum_of_heads(const std::vector<at::Tensor>& parts) {
  int64_t sum = 0;
  for (const at::Tensor& part : parts) sum += part.size(1);
  return sum;
}

}  // namespace

// [micro_batch, heads, part, size] each -> [micro_batch, sequence, heads of all / ranks, size].
at::Tensor HeadExchange::gather_sequence(const std::vector<at::Tensor>& parts) const {
  const int64_t ranks = axis_.size(), size = parts[0].size(0), held = parts[0].size(2), width = parts[0].size(3);
  const at::Tensor out = at::empty({ranks, size, held, sum_of_heads(parts) / ranks, width}, parts[0].options(),
                                   at::MemoryFormat::Contiguous);
  int64_t first = 0;
  for (const at::Tensor& part : parts) {
    const int64_t heads = part.size(1) / ranks;
    out.narrow(3, first, heads).copy_(part.unflatten(1, {ranks, heads}).permute({1, 0, 3, 2, 4}));
    first += heads;
  }
  const at::Tensor in = at::empty_like(out);
  axis_.all_to_all(in, out).wait();
  return in.transpose(0, 1).reshape({size, ranks * held, first, width});
}

// [micro_batch, heads, sequence, size] each -> [micro_batch, heads * ranks, part, size].
std::vector<at::Tensor> HeadExchange::scatter_sequence(const std::vector<at::Tensor>& parts) const {
  const int64_t ranks = axis_.size(), size = parts[0].size(0), held = parts[0].size(2) / ranks,
                width = parts[0].size(3);
  const at::Tensor out =
      at::empty({ranks, size, held, sum_of_heads(parts), width}, parts[0].options(), at::MemoryFormat::Contiguous);
  int64_t first = 0;
  for (const at::Tensor& part : parts) {
    out.narrow(3, first, part.size(1)).copy_(part.unflatten(2, {ranks, held}).permute({2, 0, 3, 1, 4}));
    first += part.size(1);
  }
  const at::Tensor in = at::empty_like(out);
  axis_.all_to_all(in, out).wait();
  std::vector<at::Tensor> results;
  first = 0;
  for (const at::Tensor& part : parts) {
    const int64_t heads = part.size(1);
    // Dense as [micro_batch, part, heads, size].
    const at::Tensor rows =
        in.narrow(3, first, heads).permute({1, 2, 0, 3, 4}).reshape({size, held, ranks * heads, width});
    results.push_back(rows.transpose(1, 2));
    first += heads;
  }
  return results;
}

at::Tensor HeadExchange::to_heads(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const {
  return gather_sequence({query, repeat_heads(key, repeated_key_heads()), repeat_heads(value, repeated_key_heads())});
}

at::Tensor HeadExchange::to_heads(const at::Tensor& query) const { return gather_sequence({query}).transpose(1, 2); }

HeadExchange::Parts HeadExchange::parts_of(const at::Tensor& together) const {
  const int64_t queries = heads(), keys = repeated_key_heads() / axis_.size();
  const auto part = [&](int64_t first, int64_t count) { return together.narrow(2, first, count).transpose(1, 2); };
  return {part(0, queries), part(queries, keys), part(queries + keys, keys)};
}

at::Tensor HeadExchange::to_sequence(const at::Tensor& output) const { return scatter_sequence({output})[0]; }

AttentionGradients HeadExchange::to_sequence(const AttentionGradients& gradients) const {
  const std::vector<at::Tensor> all = scatter_sequence({gradients.q, gradients.k, gradients.v});
  return {all[0], sum_repeated_heads(all[1], key_heads_), sum_repeated_heads(all[2], key_heads_)};
}

}  // namespace ridgeline::nn
