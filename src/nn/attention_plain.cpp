#include "nn/attention_plain.h"

#include "nn/kernels/dropout.h"

namespace ridgeline::nn {
namespace {

// A key or value head for each query head, in fp32.
at::Tensor each_head(const at::Tensor& k, const at::Tensor& q) { return repeat_heads(k.to(at::kFloat), q.size(1)); }

// fp32 scores with what a query does not see masked, [micro_batch, heads, queries, keys].
at::Tensor scores(const at::Tensor& q, const at::Tensor& k, const AttentionPattern& pattern) {
  at::Tensor result = at::matmul(q.to(at::kFloat), each_head(k, q).transpose(-2, -1)).mul_(pattern.scale);
  at::Tensor unseen = hidden_keys(pattern, q.size(2), k.size(2), q.device());
  if (pattern.causal) {
    const at::Tensor future =
        at::ones({q.size(2), k.size(2)}, at::TensorOptions().dtype(at::kBool).device(q.device())).triu_(1);
    unseen = unseen.defined() ? future.logical_or(unseen) : future;
  }
  return unseen.defined() ? result.masked_fill_(unseen, hidden_score(at::kFloat)) : result;
}

// In place where `rows` are a copy of probabilities and not, as of one sample and one head, these themselves.
at::Tensor dropped(const at::Tensor& rows, const at::Tensor& probabilities, const AttentionDropout& dropout,
                   const DropoutPlace& place) {
  const at::Tensor out = rows.is_alias_of(probabilities) ? at::empty_like(rows) : rows;
  apply_dropout(rows, DropoutRate(dropout.probability), place, out);
  return out;
}

// mask / (1 - p) applied to a block, [micro_batch, heads, queries, keys]; channel = global head * sequence + place of
// the key.
at::Tensor drop_in_block(const at::Tensor& probabilities, const AttentionDropout& dropout) {
  at::Tensor result = at::empty_like(probabilities);
  const int64_t batch = probabilities.size(0), heads = probabilities.size(1);
  int64_t first_query = 0;
  for (const spec::Range& queries : dropout.query_places) {
    int64_t first_key = 0;
    for (const spec::Range& keys : dropout.key_places) {
      for (int64_t head = 0; head < heads; ++head) {
        const auto part = [&](const at::Tensor& all) {
          return all.select(1, head).narrow(1, first_query, queries.size()).narrow(2, first_key, keys.size());
        };
        const at::Tensor rows = part(probabilities).transpose(0, 1).contiguous();
        const DropoutPlace place{dropout.key,
                                 queries.begin,
                                 {dropout.samples.data_ptr<int64_t>(), static_cast<size_t>(batch)},
                                 (dropout.first_head + head) * dropout.sequence + keys.begin};
        part(result).copy_(dropped(rows, probabilities, dropout, place).transpose(0, 1));
      }
      first_key += keys.size();
    }
    first_query += queries.size();
  }
  return result;
}

// The same of whole samples, where all heads are one row of channels.
at::Tensor drop(const at::Tensor& probabilities, const AttentionDropout& dropout) {
  if (dropout.probability <= 0) return probabilities;
  if (!dropout.query_places.empty()) return drop_in_block(probabilities, dropout);
  const int64_t batch = probabilities.size(0), heads = probabilities.size(1);
  const int64_t queries = probabilities.size(2), keys = probabilities.size(3);
  const at::Tensor rows = probabilities.permute({2, 0, 1, 3}).reshape({queries, batch, heads * keys}).contiguous();
  const DropoutPlace place{dropout.key,
                           0,
                           {dropout.samples.data_ptr<int64_t>(), static_cast<size_t>(batch)},
                           dropout.first_head * keys};
  return dropped(rows, probabilities, dropout, place).view({queries, batch, heads, keys}).permute({1, 2, 0, 3});
}

}  // namespace

AttentionOutput plain_attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                        const AttentionPattern& pattern) {
  const at::Tensor logits = scores(q, k, pattern);
  const at::Tensor log_sum_exp = at::logsumexp(logits, -1);
  const at::Tensor probabilities = at::exp(logits - log_sum_exp.unsqueeze(-1));
  const at::Tensor output = at::matmul(drop(probabilities, pattern.dropout), each_head(v, q)).to(q.scalar_type());
  // Dense as [micro_batch, queries, heads, size], which is how callers read it.
  return {output.transpose(1, 2).contiguous().transpose(1, 2), log_sum_exp, {}, {}};
}

AttentionGradients plain_attention_backward(const at::Tensor& output_gradient, const at::Tensor& q, const at::Tensor& k,
                                            const at::Tensor& v, const AttentionOutput& forward,
                                            const AttentionPattern& pattern) {
  const AttentionDropout& dropout = pattern.dropout;
  const at::Tensor probabilities = at::exp(scores(q, k, pattern) - forward.log_sum_exp.unsqueeze(-1));
  const at::Tensor gradient = output_gradient.to(at::kFloat);
  const at::Tensor dv = at::matmul(drop(probabilities, dropout).transpose(-2, -1), gradient);
  const at::Tensor dp = drop(at::matmul(gradient, each_head(v, q).transpose(-2, -1)), dropout);
  // rowsum(dp * p) = rowsum(dO * O) holds with dropout as well, since O was formed from the dropped probabilities.
  const at::Tensor row_sum = (gradient * forward.output.to(at::kFloat)).sum(-1, /*keepdim=*/true);
  const at::Tensor ds = probabilities * (dp - row_sum);
  const at::Tensor dq = at::matmul(ds, each_head(k, q)).mul_(pattern.scale);
  const at::Tensor dk = at::matmul(ds.transpose(-2, -1), q.to(at::kFloat)).mul_(pattern.scale);
  return {dq.to(q.scalar_type()), sum_repeated_heads(dk, k.size(1)).to(k.scalar_type()),
          sum_repeated_heads(dv, v.size(1)).to(v.scalar_type())};
}

}  // namespace ridgeline::nn
