#include "spec/placement.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "spec/parameters.h"

namespace ridgeline::spec {
namespace {

TEST(SplitRange, IsCompleteDisjointOrderedAndEvenForAllSizes) {
  for (int64_t total = 0; total <= 70; ++total) {
    for (int64_t parts = 1; parts <= 17; ++parts) {
      int64_t next = 0;
      for (int64_t index = 0; index < parts; ++index) {
        const Range range = split_range(total, parts, index);
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.size(), total / parts);
        EXPECT_LE(range.size(), total / parts + 1);
        next = range.end;
      }
      EXPECT_EQ(next, total);
    }
  }
}

TEST(GradientPlacement, ReplicatedParametersOnShardedActivationsArePartial) {
  EXPECT_TRUE(gradient_placement(Placement::replicate(), Placement::shard(0)).is_partial());
  EXPECT_TRUE(gradient_placement(Placement::replicate(), Placement::replicate()).is_replicate());
  EXPECT_EQ(gradient_placement(Placement::shard(1), Placement::shard(0)), Placement::shard(1));
  EXPECT_THROW(gradient_placement(Placement::partial(), Placement::replicate()), InternalError);
}

TEST(Parameters, ShardsOfEachParameterCoverItForEveryTensorSize) {
  ModelSpec model;  // vocabulary 257 does not divide
  model.tied = false;
  for (int64_t tensor : {1, 2, 4}) {
    Strategy strategy;
    strategy.tensor = tensor;
    for (const ParameterSpec& parameter : declare_parameters(model, strategy)) {
      int64_t covered = 0;
      for (int64_t index = 0; index < tensor; ++index) {
        covered += local_box(parameter.shape, parameter.value, tensor, index).elements();
      }
      EXPECT_EQ(covered, parameter.elements() * (parameter.value.is_shard() ? 1 : tensor)) << parameter.name;
    }
  }
}

TEST(Parameters, SequenceParallelMakesGradientsOfReplicatedParametersPartial) {
  Strategy strategy;
  strategy.tensor = 2;
  for (bool sequence_parallel : {false, true}) {
    strategy.sequence_parallel = sequence_parallel;
    for (const ParameterSpec& parameter : declare_parameters(ModelSpec{}, strategy)) {
      EXPECT_EQ(parameter.gradient.is_partial(), sequence_parallel && parameter.value.is_replicate()) << parameter.name;
    }
  }
}

TEST(Parameters, CountIsThePublishedOne) {
  ModelSpec gpt2;
  gpt2.layers = 12, gpt2.hidden = 768, gpt2.heads = 12, gpt2.vocabulary = 50257, gpt2.sequence = 1024;
  EXPECT_EQ(parameter_count(gpt2), 124439808);  // openai-community/gpt2
}

}  // namespace
}  // namespace ridgeline::spec
