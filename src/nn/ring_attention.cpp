#include "nn/ring_attention.h"

#include <utility>
#include <vector>

#include "core/error.h"

namespace ridgeline::nn {
namespace {

using spec::Range;

at::Tensor rows(const at::Tensor& heads, const Range& range) { return heads.narrow(2, range.begin, range.size()); }

// [2, micro_batch, key heads, tokens, size], dense: what goes round as one message.
at::Tensor together(const at::Tensor& k, const at::Tensor& v, at::ScalarType type) {
  const at::Tensor both =
      at::empty({2, k.size(0), k.size(1), k.size(2), k.size(3)}, k.options().dtype(type), at::MemoryFormat::Contiguous);
  both[0].copy_(k);
  both[1].copy_(v);
  return both;
}

// The ring as one rank sees it, in one pass over one micro-batch.
class Ring {
 public:
  Ring(const mesh::Communicator& axis, const AttentionPattern& pattern, const at::Tensor& q)
      : axis_(axis), pattern_(pattern), device_(q.device()), chunk_(q.size(2) / 2) {
    RIDGELINE_ASSERT(q.size(2) % 2 == 0);
  }

  int64_t ranks() const { return axis_.size(); }
  std::optional<RingBlock> block(int64_t owner) const {
    return ring_block(axis_.rank(), owner, ranks(), chunk_, pattern_.window);
  }
  // Whose keys are here after `step` turns.
  int64_t owner(int64_t step) const { return (axis_.rank() + ranks() - step) % ranks(); }

  AttentionPattern pattern(const RingBlock& block, int64_t owner) const {
    const std::vector<Range> queries = places(axis_.rank(), block.queries), keys = places(owner, block.keys);
    AttentionPattern part = pattern_;
    part.window = 0;
    part.documents.reset();
    part.causal = block.causal;
    part.hidden = hidden(queries, keys);
    if (part.dropout.probability > 0) {
      part.dropout.query_places = queries;
      part.dropout.key_places = keys;
      part.dropout.sequence = 2 * ranks() * chunk_;
    }
    return part;
  }

 private:
  // Of rows that `rank` holds, as ranges of the sequence.
  std::vector<Range> places(int64_t rank, const Range& rows) const {
    std::vector<Range> list;
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t begin = (half == 0 ? rank : 2 * ranks() - 1 - rank) * chunk_;
      const Range held = spec::intersection(rows, {half * chunk_, (half + 1) * chunk_});
      if (held.size() > 0) list.push_back({begin + held.begin - half * chunk_, begin + held.end - half * chunk_});
    }
    return list;
  }

  at::Tensor numbers(const std::vector<Range>& places) const {
    std::vector<at::Tensor> parts;
    const auto options = at::TensorOptions().dtype(at::kLong).device(device_);
    for (const Range& range : places) parts.push_back(at::arange(range.begin, range.end, options));
    return at::cat(parts);
  }

  // By the window and by documents; undefined where they hide nothing. What comes later is hidden by `causal`.
  at::Tensor hidden(const std::vector<Range>& query_places, const std::vector<Range>& key_places) const {
    const bool window = pattern_.window > 0 && query_places.back().end - key_places.front().begin > pattern_.window;
    if (!window && !pattern_.documents.defined()) return {};
    const at::Tensor queries = numbers(query_places), keys = numbers(key_places);
    at::Tensor result;
    if (window) result = (queries.unsqueeze(1) - keys.unsqueeze(0)).ge(pattern_.window);
    if (!pattern_.documents.defined()) return result;
    const auto of = [&](const at::Tensor& places) { return pattern_.documents.index_select(1, places); };
    const at::Tensor other = of(queries).unsqueeze(2).ne(of(keys).unsqueeze(1)).unsqueeze(1);
    return result.defined() ? result.logical_or(other) : other;
  }

  const mesh::Communicator& axis_;
  const AttentionPattern& pattern_;
  at::Device device_;
  int64_t chunk_;
};

// Attention to several blocks of keys: of each query the outputs, weighted by their shares of the sum of exponentials.
class Merged {
 public:
  // The first block has all queries.
  void add(AttentionOutput part, const Range& queries) {
    if (!all_.output.defined()) {
      all_ = std::move(part);
      all_.output = all_.output.to(at::kFloat);
      return;
    }
    const at::Tensor output = rows(all_.output, queries), old = rows(all_.log_sum_exp, queries);
    const at::Tensor sum = at::logaddexp(old, part.log_sum_exp);
    const auto weight = [&](const at::Tensor& of) { return at::exp(of - sum).unsqueeze(-1); };
    output.mul_(weight(old)).addcmul_(part.output.to(at::kFloat), weight(part.log_sum_exp));
    old.copy_(sum);
  }

  // Dense as [micro_batch, queries, heads, size], which is how callers read it.
  AttentionOutput take(at::ScalarType type) {
    all_.output = all_.output.to(type).transpose(1, 2).contiguous().transpose(1, 2);
    return std::move(all_);
  }

 private:
  AttentionOutput all_;
};

}  // namespace

std::optional<RingBlock> ring_block(int64_t rank, int64_t owner, int64_t ranks, int64_t chunk, int64_t window) {
  const Range first{0, chunk}, second{chunk, 2 * chunk}, both{0, 2 * chunk};
  if (rank == owner) return RingBlock{both, both, true};
  const auto in_reach = [&](int64_t query_chunk, int64_t key_chunk) {
    return window == 0 || (query_chunk - key_chunk - 1) * chunk + 1 < window;
  };
  const int64_t late_queries = 2 * ranks - 1 - rank, late_keys = 2 * ranks - 1 - owner;
  if (owner < rank) {
    if (in_reach(late_queries, owner)) return RingBlock{both, first, false};
    if (in_reach(rank, owner)) return RingBlock{first, first, false};
    return std::nullopt;
  }
  if (in_reach(late_queries, owner)) return RingBlock{second, both, false};
  if (in_reach(late_queries, late_keys)) return RingBlock{second, second, false};
  return std::nullopt;
}

AttentionOutput ring_attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                       const AttentionPattern& pattern, const mesh::Communicator& axis) {
  const Ring ring(axis, pattern, q);
  Merged merged;
  at::Tensor here = together(k, v, k.scalar_type());
  for (int64_t step = 0; step < ring.ranks(); ++step) {
    at::Tensor next;
    mesh::Work turn;
    if (step + 1 < ring.ranks()) {
      next = at::empty_like(here);
      turn = axis.shift(next, here);
    }
    const int64_t owner = ring.owner(step);
    if (const auto block = ring.block(owner)) {
      merged.add(attention_forward(rows(q, block->queries), rows(here[0], block->keys), rows(here[1], block->keys),
                                   ring.pattern(*block, owner)),
                 block->queries);
    }
    turn.wait();
    here = std::move(next);
  }
  return merged.take(q.scalar_type());
}

AttentionGradients ring_attention_backward(const at::Tensor& output_gradient, const at::Tensor& q, const at::Tensor& k,
                                           const at::Tensor& v, const AttentionOutput& forward,
                                           const AttentionPattern& pattern, const mesh::Communicator& axis) {
  const Ring ring(axis, pattern, q);
  at::Tensor here = together(k, v, k.scalar_type());
  at::Tensor of_queries, of_own_keys;
  at::Tensor of_keys;  // of the keys that are here, from the ranks where they have been; on its way while `following`
  mesh::Work following;
  for (int64_t step = 0; step < ring.ranks(); ++step) {
    at::Tensor next;
    mesh::Work turn;
    if (step + 1 < ring.ranks()) {
      next = at::empty_like(here);
      turn = axis.shift(next, here);
    }
    const int64_t owner = ring.owner(step);
    const auto block = ring.block(owner);
    AttentionGradients part;
    if (block) {
      const Range& queries = block->queries;
      const AttentionOutput of_block{rows(forward.output, queries), rows(forward.log_sum_exp, queries).contiguous(),
                                     forward.philox_seed, forward.philox_offset};
      part = attention_backward(rows(output_gradient, queries), rows(q, queries), rows(here[0], block->keys),
                                rows(here[1], block->keys), of_block, ring.pattern(*block, owner));
    }
    if (step == 0) {
      of_queries = part.q.to(at::kFloat);
      of_own_keys = together(part.k, part.v, at::kFloat);
    } else {
      if (step == 1) {
        of_keys = at::zeros_like(of_own_keys);
      } else {
        following.wait();
      }
      if (block) {
        rows(of_queries, block->queries).add_(part.q);
        rows(of_keys[0], block->keys).add_(part.k);
        rows(of_keys[1], block->keys).add_(part.v);
      }
      at::Tensor arriving = at::empty_like(of_keys);
      following = axis.shift(arriving, of_keys);
      of_keys = std::move(arriving);
    }
    turn.wait();
    here = std::move(next);
  }
  following.wait();
  if (of_keys.defined()) of_own_keys.add_(of_keys);
  return {of_queries.to(q.scalar_type()), of_own_keys[0].to(k.scalar_type()), of_own_keys[1].to(v.scalar_type())};
}

}  // namespace ridgeline::nn
