// Shares of the largest rank against numbers by hand, and against all parameters.
#include "cost/local_shares.h"

#include <gtest/gtest.h>

#include "cost/saved_tensors.h"
#include "spec/parameters.h"

namespace ridgeline::cost {
namespace {

spec::ModelSpec model_of() {
  spec::ModelSpec model;
  model.layers = 3;
  model.hidden = 256;
  model.heads = 8;
  model.vocabulary = 1001;
  model.sequence = 64;
  return model;
}

TEST(LocalShares, OfOneRankAreTheModel) {
  spec::ModelSpec model = model_of();
  for (const bool norm : {false, true}) {
    model.embedding_norm = norm;
    const LocalShares shares = local_shares(model, 1);
    EXPECT_EQ(shares.embedding + 3 * shares.layer + shares.head, spec::parameter_count(model));
    EXPECT_EQ(shares.tied, 1001 * 256);
    EXPECT_EQ(shares.query_width, 256);
    EXPECT_EQ(shares.mlp_width, 1024);
    EXPECT_EQ(shares.expert_width, 0);
  }
}

TEST(LocalShares, UnevenPartsAreTheLargest) {
  spec::ModelSpec model = model_of();
  model.ffn_hidden = 1001;
  const LocalShares shares = local_shares(model, 4);
  EXPECT_EQ(shares.mlp_width, 251);
  EXPECT_EQ(shares.vocabulary, 251);
  EXPECT_EQ(shares.query_width, 64);
  EXPECT_EQ(shares.largest, 251 * 256);
}

TEST(LocalShares, GroupedHeadsAndExperts) {
  spec::ModelSpec model = model_of();
  model.kv_heads = 4;
  model.experts = 6;
  model.expert_ffn_hidden = 100;
  model.shared_ffn_hidden = 40;
  const LocalShares shares = local_shares(model, 2);
  EXPECT_EQ(shares.query_width, 128);
  EXPECT_EQ(shares.key_width, 64);
  EXPECT_EQ(shares.mlp_width, 0);
  EXPECT_EQ(shares.expert_width, 50);
  EXPECT_EQ(shares.shared_width, 20);
}

TEST(LocalShares, RowsOfTheStreamFollowItsPlacement) {
  const spec::ModelSpec model = model_of();
  spec::Strategy strategy;
  strategy.tensor = 4;
  strategy.micro_batch = 3;
  EXPECT_EQ(LocalShares::stream_rows(model, strategy), 192);
  strategy.sequence_parallel = true;
  EXPECT_EQ(LocalShares::stream_rows(model, strategy), 48);
}

// The norm after the embedding keeps its input and a row's two statistics, which cut with the sequence.
TEST(SavedTensors, OfANormAfterTheEmbedding) {
  spec::ModelSpec model = model_of();
  model.embedding_norm = true;
  spec::Strategy strategy;
  strategy.tensor = 2;
  strategy.sequence_parallel = true;
  int64_t bytes = 0;
  for (const SavedTensor& tensor : saved_tensors(model, strategy, spec::embedding_unit())) {
    EXPECT_TRUE(is_kept(tensor, spec::Recompute::full));
    bytes += local_bytes(tensor, strategy, spec::Precision::bf16, 0);
  }
  EXPECT_EQ(bytes, 32 * (256 * 2 + 2 * 4));
}

}  // namespace
}  // namespace ridgeline::cost
