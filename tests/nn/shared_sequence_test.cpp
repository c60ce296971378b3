// Attention of ranks that share sequences, by a ring and by sharing out heads, against attention on one rank.
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "core/random.h"
#include "mesh/ranks.h"
#include "nn/attention_plain.h"
#include "nn/head_exchange.h"
#include "nn/ring_attention.h"
#include "nn/small_model.h"

namespace ridgeline::nn {
namespace {

enum class Kind { ring, all_to_all };

struct Shape {
  std::string name;
  int64_t batch, heads, key_heads, part, head_size;  // `part`: tokens of a rank's chunk
  int64_t window = 0;
  bool documents = false;
  double dropout = 0;
};

struct Whole {
  at::Tensor q, k, v, output_gradient;
  AttentionPattern pattern;
};

Whole make_whole(const Shape& shape, int64_t sequence, at::ScalarType type) {
  at::manual_seed(5);
  const auto heads = [&](int64_t count) {
    return at::randn({shape.batch, sequence, count, shape.head_size}).to(type).transpose(1, 2);
  };
  Whole whole{heads(shape.heads), heads(shape.key_heads), heads(shape.key_heads), heads(shape.heads), {}};
  whole.pattern.scale = 1.0 / std::sqrt(static_cast<double>(shape.head_size));
  whole.pattern.window = shape.window;
  if (shape.documents) whole.pattern.documents = at::rand({shape.batch, sequence}).lt(0.2).cumsum(1);
  if (shape.dropout > 0) {
    whole.pattern.dropout = {shape.dropout, dropout_key(3, 1, 2), 6, at::arange(40, 40 + shape.batch, at::kLong)};
  }
  return whole;
}

// Tokens of all ranks, one after the other, in the order of the sequence.
std::vector<int64_t> held(Kind kind, int64_t ranks, int64_t rank, int64_t sequence) {
  spec::Strategy strategy;
  strategy.context = ranks;
  strategy.context_kind = kind == Kind::ring ? spec::ContextKind::ring : spec::ContextKind::all_to_all;
  std::vector<int64_t> tokens;
  for (const spec::Range& range : strategy.held_places(sequence, rank)) {
    for (int64_t token = range.begin; token < range.end; ++token) tokens.push_back(token);
  }
  return tokens;
}

struct Result {
  at::Tensor output, log_sum_exp, q, k, v;
};

Result on_one_rank(const Whole& whole) {
  const AttentionOutput forward = plain_attention_forward(whole.q, whole.k, whole.v, whole.pattern);
  const AttentionGradients back =
      plain_attention_backward(whole.output_gradient, whole.q, whole.k, whole.v, forward, whole.pattern);
  return {forward.output, forward.log_sum_exp, back.q, back.k, back.v};
}

Result shared(Kind kind, const Whole& in, const mesh::Communicator& axis) {
  if (kind == Kind::ring) {
    const AttentionOutput forward = ring_attention_forward(in.q, in.k, in.v, in.pattern, axis);
    const AttentionGradients back =
        ring_attention_backward(in.output_gradient, in.q, in.k, in.v, forward, in.pattern, axis);
    return {forward.output, forward.log_sum_exp, back.q, back.k, back.v};
  }
  const HeadExchange exchange(axis, in.q.size(1), in.k.size(1));
  AttentionPattern pattern = in.pattern;
  pattern.dropout.first_head += axis.rank() * exchange.heads();
  const at::Tensor together = exchange.to_heads(in.q, in.k, in.v);
  const HeadExchange::Parts parts = exchange.parts_of(together);
  const AttentionOutput forward = attention_forward(parts.query, parts.key, parts.value, pattern);
  const at::Tensor gradient = exchange.to_heads(in.output_gradient);
  const AttentionGradients back =
      exchange.to_sequence(attention_backward(gradient, parts.query, parts.key, parts.value, forward, pattern));
  return {exchange.to_sequence(forward.output), {}, back.q, back.k, back.v};
}

void expect_equals_one_rank(Kind kind, const Shape& shape, int64_t ranks, at::ScalarType type, double bound) {
  const int64_t sequence = 2 * ranks * shape.part;
  const Whole whole = make_whole(shape, sequence, type);
  Whole exact = whole;
  for (at::Tensor* tensor : {&exact.q, &exact.k, &exact.v, &exact.output_gradient}) *tensor = tensor->to(at::kFloat);
  const Result expected = on_one_rank(exact);
  mesh::run_ranks(ranks, [&](int64_t rank, std::shared_ptr<mesh::Store> store) {
    const mesh::Mesh mesh({.context = ranks}, rank, store, platform::Device::select("cpu"), mesh::rank_options());
    const at::Tensor tokens = at::tensor(held(kind, ranks, rank, sequence), at::kLong);
    const auto part = [&](const at::Tensor& all) { return all.index_select(2, tokens); };
    const Whole mine{part(whole.q), part(whole.k), part(whole.v), part(whole.output_gradient), whole.pattern};
    const Result actual = shared(kind, mine, mesh.group(mesh::Axis::context));
    EXPECT_EQ(actual.output.scalar_type(), type);
    EXPECT_LT(relative_error(actual.output, part(expected.output)), bound);
    if (actual.log_sum_exp.defined()) {
      EXPECT_EQ(actual.log_sum_exp.scalar_type(), at::kFloat);
      EXPECT_LT(relative_error(actual.log_sum_exp, part(expected.log_sum_exp)), bound);
    }
    EXPECT_LT(relative_error(actual.q, part(expected.q)), bound);
    EXPECT_LT(relative_error(actual.k, part(expected.k)), bound);
    EXPECT_LT(relative_error(actual.v, part(expected.v)), bound);
    mesh.world().barrier().wait();
  });
}

const Shape kShapes[] = {{"heads", 2, 8, 8, 5, 16},
                         {"groups", 1, 8, 2, 16, 8},
                         {"one_key_head", 2, 8, 1, 3, 8},
                         {"window", 2, 8, 4, 6, 8, 13},
                         {"narrow_window", 1, 8, 8, 6, 8, 4},
                         {"documents", 2, 8, 2, 7, 8, 0, true},
                         {"window_and_documents", 1, 8, 8, 8, 16, 11, true},
                         {"dropout", 2, 8, 2, 5, 8, 0, false, 0.3},
                         {"dropout_of_one_sample", 1, 8, 8, 5, 8, 0, false, 0.3},
                         {"everything", 2, 8, 4, 4, 8, 9, true, 0.2},
                         {"single_tokens", 1, 8, 8, 1, 8}};

class SharedSequence : public testing::TestWithParam<std::tuple<Kind, int64_t, Shape>> {};

TEST_P(SharedSequence, EqualsOneRankForwardAndBackward) {
  const auto& [kind, ranks, shape] = GetParam();
  expect_equals_one_rank(kind, shape, ranks, at::kFloat, 3e-6);
}

std::string name_of(const testing::TestParamInfo<std::tuple<Kind, int64_t, Shape>>& info) {
  return fmt::format("{}_{}_{}", std::get<0>(info.param) == Kind::ring ? "ring" : "all_to_all", std::get<1>(info.param),
                     std::get<2>(info.param).name);
}

INSTANTIATE_TEST_SUITE_P(Rings, SharedSequence,
                         testing::Combine(testing::Values(Kind::ring), testing::Values(2, 3, 4, 8),
                                          testing::ValuesIn(kShapes)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Heads, SharedSequence,
                         testing::Combine(testing::Values(Kind::all_to_all), testing::Values(2, 4, 8),
                                          testing::ValuesIn(kShapes)),
                         name_of);

TEST(SharedSequencePrecision, IsThatOfTheKernel) {
  const Shape shape{"", 2, 8, 2, 16, 16};
  for (const Kind kind : {Kind::ring, Kind::all_to_all}) {
    expect_equals_one_rank(kind, shape, 4, at::kBFloat16, 2e-2);
    expect_equals_one_rank(kind, shape, 2, at::kHalf, 3e-3);
  }
}

// Pairs (query, key) of the blocks of all ranks: each that is visible once, none twice, and as many on every rank.
TEST(RingBlocks, CoverWhatIsVisibleAndAreEven) {
  for (const int64_t ranks : {1, 2, 3, 4, 5, 8}) {
    for (const int64_t window : {0, 1, 3, 7, 100}) {
      SCOPED_TRACE(fmt::format("{} ranks, window {}", ranks, window));
      const int64_t chunk = 3, sequence = 2 * ranks * chunk;
      std::set<std::pair<int64_t, int64_t>> seen;
      std::set<int64_t> work;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        int64_t pairs = 0;
        for (int64_t owner = 0; owner < ranks; ++owner) {
          const auto block = ring_block(rank, owner, ranks, chunk, window);
          if (!block) continue;
          const std::vector<int64_t> queries = held(Kind::ring, ranks, rank, sequence),
                                     keys = held(Kind::ring, ranks, owner, sequence);
          pairs += block->queries.size() * block->keys.size();
          for (int64_t q = block->queries.begin; q < block->queries.end; ++q) {
            for (int64_t k = block->keys.begin; k < block->keys.end; ++k) {
              if (block->causal && k > q) continue;
              EXPECT_TRUE(seen.insert({queries[q], keys[k]}).second);
              EXPECT_LE(keys[k], queries[q]);
            }
          }
        }
        work.insert(pairs);
      }
      for (int64_t query = 0; query < sequence; ++query) {
        for (int64_t key = 0; key <= query; ++key) {
          const bool is_visible = window == 0 || query - key < window;
          EXPECT_TRUE(!is_visible || seen.contains({query, key})) << query << " " << key;
        }
      }
      EXPECT_TRUE(window > 0 || work.size() == 1);
      // Out of reach of a window of 3 are all chunks but those next to each other.
      EXPECT_TRUE(window != 3 || static_cast<int64_t>(seen.size()) < 3 * chunk * sequence);
    }
  }
}

}  // namespace
}  // namespace ridgeline::nn
