#include "spec/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "core/error.h"

namespace ridgeline::spec {
namespace {

using testing::HasSubstr;

ModelSpec small_model() {
  ModelSpec model;
  model.layers = 4;
  model.hidden = 96;
  model.heads = 12;
  model.sequence = 64;
  return model;
}

std::string error(Strategy strategy, int64_t ranks, const ModelSpec& model = small_model()) {
  try {
    derive_data(strategy, model, ranks);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(DeriveData, TakesWhatTensorAndPipelineLeave) {
  Strategy strategy;
  strategy.tensor = 2;
  strategy.pipeline = 2;
  strategy.micro_batch = 2;
  strategy.global_batch = 24;
  derive_data(strategy, small_model(), 12);
  EXPECT_EQ(strategy.data, 3);
  EXPECT_EQ(strategy.ranks(), 12);
  EXPECT_EQ(strategy.micro_batches(), 4);
}

TEST(DeriveData, LeavesDataAloneWhereItThrows) {
  Strategy strategy;
  strategy.tensor = 5;
  EXPECT_THROW(derive_data(strategy, small_model(), 5), InputError);
  EXPECT_EQ(strategy.data, 0);
}

TEST(DeriveData, NamesTheKeyThatDoesNotDivide) {
  EXPECT_THAT(error({.tensor = 5}, 5),
              HasSubstr("strategy.tensor = 5: 12 heads do not divide by 5; use one of 1, 2, 3, 4, 6, 12"));
  EXPECT_THAT(error({.tensor = 3, .sequence_parallel = true}, 3),
              HasSubstr("strategy.sequence_parallel = true: a sequence of 64"));
  EXPECT_THAT(error({.tensor = 2}, 3), HasSubstr("strategy.tensor = 2: 3 ranks cannot be cut in groups of"));
  EXPECT_THAT(error({.pipeline = 2}, 1), HasSubstr("strategy.pipeline = 2: 1 rank cannot be cut"));
  EXPECT_THAT(error({.pipeline = 5}, 5), HasSubstr("strategy.pipeline = 5: more stages than the model's 4 layers"));
  EXPECT_THAT(error({.micro_batch = 3, .global_batch = 8}, 1),
              HasSubstr("does not divide by micro_batch * data = 3 * 1 = 3; use 6 or 9"));
  EXPECT_THAT(error({.micro_batch = 9, .global_batch = 8}, 1), HasSubstr("use 9 or change"));
  ModelSpec model = small_model();
  model.vocabulary = 3;
  EXPECT_THAT(error({.tensor = 4}, 4, model), HasSubstr("strategy.tensor = 4: a vocabulary of 3"));
}

TEST(DeriveData, ChecksStageLayers) {
  EXPECT_EQ(error({.pipeline = 2, .stage_layers = {1, 3}}, 2), "no error");
  EXPECT_THAT(error({.pipeline = 2, .stage_layers = {4}}, 2), HasSubstr("strategy.stage_layers = [4]: 1 entries"));
  EXPECT_THAT(error({.pipeline = 2, .stage_layers = {1, 2}}, 2), HasSubstr("they add up to 3, the model has 4 layers"));
  EXPECT_THAT(error({.pipeline = 2, .stage_layers = {0, 4}}, 2), HasSubstr("expected entries of 1 to 4"));
  // Entries whose sum leaves 64 bits are refused one by one.
  EXPECT_THAT(error({.pipeline = 2, .stage_layers = {INT64_MAX, INT64_MAX}}, 2), HasSubstr("expected entries"));
}

TEST(DeriveData, ChecksChunks) {
  EXPECT_EQ(error({.pipeline = 2, .virtual_pipeline = 2}, 2), "no error");
  EXPECT_THAT(error({.virtual_pipeline = 2}, 1),
              HasSubstr("strategy.virtual_pipeline = 2: interleaving needs at least"));
  EXPECT_THAT(error({.pipeline = 2, .schedule = ScheduleKind::gpipe, .virtual_pipeline = 2}, 2),
              HasSubstr("a form of"));
  EXPECT_THAT(error({.pipeline = 2, .virtual_pipeline = 3}, 2),
              HasSubstr("2 stages of 3 chunks are more than the model's 4 layers; use at most 2"));
  ModelSpec five = small_model();
  five.layers = 5;  // divides by nothing
  EXPECT_EQ(error({.pipeline = 2, .virtual_pipeline = 2}, 2, five), "no error");
  EXPECT_EQ(error({.pipeline = 2, .virtual_pipeline = 2, .stage_layers = {2, 1, 1, 1}}, 2, five), "no error");
  EXPECT_THAT(error({.pipeline = 2, .virtual_pipeline = 2, .stage_layers = {2, 2}}, 2),
              HasSubstr("2 entries for strategy.pipeline = 2 of 2 chunks each; give one for each chunk"));
  const auto vee = ScheduleKind::zero_bubble_v;
  EXPECT_EQ(error({.pipeline = 2, .schedule = vee, .global_batch = 7}, 2), "no error");
  EXPECT_THAT(error({.schedule = vee}, 1), HasSubstr("need at least 2 stages"));
  five.layers = 6;
  EXPECT_THAT(error({.pipeline = 2, .schedule = vee, .virtual_pipeline = 3}, 2, five),
              HasSubstr("has 2 chunks a stage"));
  EXPECT_THAT(error({.pipeline = 3, .schedule = vee}, 3),
              HasSubstr("3 stages of 2 chunks are more than the model's 4"));
  Strategy two{.pipeline = 2, .schedule = vee};
  derive_data(two, small_model(), 2);
  EXPECT_EQ(two.virtual_pipeline, 2);
  EXPECT_EQ(two.head_stage(), 0);
  EXPECT_THAT(error({.pipeline = 2, .virtual_pipeline = 2, .global_batch = 7}, 2),
              HasSubstr("the 7 micro-batches of a replica do not divide by strategy.pipeline = 2"));
}

TEST(DeriveData, ContextIsAnAxisOfItsOwn) {
  Strategy strategy{.tensor = 2, .pipeline = 2, .context = 4, .zero_stage = 1};
  derive_data(strategy, small_model(), 32);
  EXPECT_EQ(strategy.data, 2);
  EXPECT_EQ(strategy.ranks(), 32);
  EXPECT_EQ(strategy.micro_batches(), 4);  // ranks that share a sequence share its micro-batches
  EXPECT_EQ(strategy.copies(), 8);
  EXPECT_EQ(strategy.shards(), 8);
  EXPECT_EQ(strategy.held_sequence(small_model()), 16);
}

TEST(DeriveData, ChecksContext) {
  const auto heads = ContextKind::all_to_all;
  EXPECT_EQ(error({.context = 32}, 32), "no error");
  EXPECT_THAT(error({.context = 64}, 64),
              HasSubstr("strategy.context = 64: a sequence of 64 cannot be cut in 128 parts"));
  EXPECT_THAT(error({.context = 3}, 3), HasSubstr("use a context of 1, 2, 4, 8, 16, 32, or a model.sequence that"));
  EXPECT_THAT(error({.context = 2}, 3), HasSubstr("tensor * context * pipeline = 1 * 2 * 1 = 2"));
  EXPECT_THAT(error({.tensor = 4, .sequence_parallel = true, .context = 32}, 128),
              HasSubstr("a sequence of 2 (what strategy.context = 32 leaves a rank) does not divide"));
  EXPECT_EQ(error({.tensor = 3, .context = 4, .context_kind = heads}, 12), "no error");
  EXPECT_THAT(error({.tensor = 3, .context = 8, .context_kind = heads}, 24),
              HasSubstr("strategy.context = 8: all_to_all shares out heads, and the 4 of a tensor rank"));
  ModelSpec grouped = small_model();
  grouped.kv_heads = 6;
  grouped.sequence = 96;
  EXPECT_EQ(error({.context = 12, .context_kind = heads}, 12, grouped), "no error");  // each key head on two ranks
  EXPECT_THAT(error({.context = 4, .context_kind = heads}, 4, grouped), HasSubstr("of the 6 key and value heads"));
  EXPECT_THAT(error({.context = 2, .zero_stage = 1, .shard_group = 3}, 8),
              HasSubstr("does not divide the 8 ranks of the data axis with 2 of context each"));
  EXPECT_THAT(error({.tensor = 1, .pipeline = 1'000'000, .context = 1'000'000}, 8), HasSubstr("strategy."));
}

TEST(HeldPlaces, AreAllOfTheSequenceOnce) {
  for (const auto kind : {ContextKind::ring, ContextKind::all_to_all}) {
    const Strategy strategy{.context = 3, .context_kind = kind};
    std::vector<int64_t> seen(36, 0);
    for (int64_t rank = 0; rank < 3; ++rank) {
      int64_t held = 0;
      for (const Range& places : strategy.held_places(36, rank)) {
        held += places.size();
        for (int64_t token = places.begin; token < places.end; ++token) ++seen[token];
      }
      EXPECT_EQ(held, 12);
    }
    EXPECT_EQ(seen, std::vector<int64_t>(36, 1));
  }
  EXPECT_EQ((Strategy{.context = 3}.held_places(36, 1)), (std::vector<Range>{{6, 12}, {24, 30}}));
}

TEST(DeriveData, ChecksExperts) {
  ModelSpec model = small_model();
  Strategy strategy;
  strategy.global_batch = 24;
  strategy.expert = 2;
  EXPECT_THAT(error(strategy, 4, model), HasSubstr("strategy.expert = 2: the model has no experts"));
  model.experts = 6;
  strategy.expert = 4;
  EXPECT_THAT(error(strategy, 4, model), HasSubstr("strategy.expert = 4: 6 experts (model.experts) do not divide"));
  strategy.expert = 2;
  EXPECT_EQ(error(strategy, 4, model), "no error");
  EXPECT_THAT(error(strategy, 3, model), HasSubstr("strategy.expert = 2: does not divide the 3 ranks"));
  strategy.tensor = 4;
  EXPECT_THAT(error(strategy, 4, model), HasSubstr("strategy.expert = 2: does not divide the 1 ranks"));
  strategy.expert_tensor = 1;
  EXPECT_EQ(error(strategy, 4, model), "no error") << "whole experts lie on ranks of the tensor axis";
  strategy.expert_tensor = 2;
  EXPECT_THAT(error(strategy, 4, model), HasSubstr("strategy.expert_tensor = 2: expected 1"));
  strategy.tensor = 1;
  strategy.expert_tensor = 0;
  strategy.zero_stage = 1;
  strategy.shard_group = 3;
  EXPECT_THAT(error(strategy, 6, model), HasSubstr("(shard_group ranks)"));
}

TEST(DeriveData, ChecksRanges) {
  EXPECT_THAT(error({.tensor = 0}, 1), HasSubstr("strategy.tensor = 0: expected 1 to"));
  EXPECT_THAT(error({.pipeline = -1}, 1), HasSubstr("strategy.pipeline = -1"));
  EXPECT_THAT(error({.zero_stage = 4}, 1), HasSubstr("strategy.zero_stage = 4: expected 0 to 3"));
  EXPECT_THAT(error({.shard_group = 2}, 4), HasSubstr("strategy.shard_group = 2: nothing is sharded with"));
  EXPECT_THAT(error({.zero_stage = 3, .shard_group = 3}, 4),
              HasSubstr("strategy.shard_group = 3: does not divide the 4 ranks"));
  EXPECT_THAT(error({.micro_batch = 0}, 1), HasSubstr("strategy.micro_batch = 0"));
  EXPECT_THAT(error({.bucket_mib = 0}, 1), HasSubstr("strategy.bucket_mib = 0"));
  EXPECT_THAT(error({}, 0), HasSubstr("0 ranks cannot be cut"));
}

// Each key within its bounds, and their product out of all.
TEST(DeriveData, RefusesActivationsThatCannotBeCounted) {
  ModelSpec model = small_model();
  model.sequence = 100'000'000;
  model.ffn_hidden = 10'000'000;
  Strategy strategy{.micro_batch = 1'000'000};
  strategy.global_batch = 1'000'000;
  EXPECT_THAT(error(strategy, 1, model),
              HasSubstr("strategy.micro_batch = 1000000: 1000000 samples of 100000000 tokens"));
  model.sequence = 1'000'000;
  model.layers = 1000;
  strategy.micro_batch = 1;
  EXPECT_EQ(error(strategy, 1, model), "no error");
  strategy.schedule = ScheduleKind::gpipe;
  EXPECT_THAT(error(strategy, 1, model), HasSubstr("and the 1000000 micro-batches that gpipe keeps"));
}

}  // namespace
}  // namespace ridgeline::spec
