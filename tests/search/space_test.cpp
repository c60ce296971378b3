// The enumeration against a brute force over all numbers, and the ranking against a plain sort.
#include "search/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "search/best.h"
#include "source_folder.h"

namespace ridgeline::search {
namespace {

using Tuple = std::tuple<int64_t, int64_t, int64_t, int64_t>;

spec::ModelSpec small_model() {
  spec::ModelSpec model;
  model.layers = 12;
  model.hidden = 768;
  model.heads = 12;
  model.vocabulary = 50257;
  model.sequence = 1024;
  return model;
}

// Key and value heads of a group, which the tensor axis has to divide too.
spec::ModelSpec grouped_model() {
  spec::ModelSpec model = small_model();
  model.kv_heads = 4;
  model.positions = spec::Positions::rotary;
  model.norm = spec::Norm::rms_norm;
  model.gated_mlp = true;
  return model;
}

spec::ModelSpec expert_model() {
  spec::ModelSpec model = grouped_model();
  model.kv_heads = 6;
  model.experts = 8;
  return model;
}

class Covers : public testing::TestWithParam<spec::ModelSpec> {};
INSTANTIATE_TEST_SUITE_P(Models, Covers, testing::Values(small_model(), grouped_model(), expert_model()),
                         [](const auto& info) {
                           return info.param.experts > 0 ? "Experts" : info.param.kv_heads > 0 ? "Grouped" : "Plain";
                         });

TEST_P(Covers, ExactlyWhatIsLegal) {
  const spec::ModelSpec model = GetParam();
  const Space space{.devices = 24, .global_batch = 48};
  std::set<Tuple> found;
  for (const Cut& cut : cuts(space, model)) {
    for_each_plan(space, model, cut, [&](const spec::Strategy& s) {
      if (s.virtual_pipeline == 1) found.insert({s.tensor, s.pipeline, s.data, s.micro_batch});
      spec::Strategy again = s;
      EXPECT_NO_THROW(spec::derive_data(again, model, space.devices));
      EXPECT_EQ(again.data, s.data);
    });
  }
  std::set<Tuple> expected;
  for (int64_t tensor = 1; tensor <= 24; ++tensor) {
    for (int64_t pipeline = 1; pipeline <= 24; ++pipeline) {
      for (int64_t micro_batch = 1; micro_batch <= 48; ++micro_batch) {
        spec::Strategy s;
        s.tensor = tensor;
        s.pipeline = pipeline;
        s.micro_batch = micro_batch;
        s.global_batch = 48;
        try {
          spec::derive_data(s, model, 24);
        } catch (const InputError&) {
          continue;
        }
        expected.insert({tensor, pipeline, s.data, micro_batch});
      }
    }
  }
  EXPECT_EQ(found, expected);
  EXPECT_GT(found.size(), 50u);
}

// Every number of chunks up to the space's bound against derive_data, where chunks are of equal layers.
TEST_P(Covers, ExactlyTheChunksThatAreLegal) {
  const spec::ModelSpec model = GetParam();
  const Space space{.devices = 12, .global_batch = 48};
  std::set<std::tuple<int64_t, int64_t, int64_t, int64_t>> found, expected;
  for (const Cut& cut : cuts(space, model)) {
    for_each_plan(space, model, cut, [&](const spec::Strategy& s) {
      if (s.schedule != spec::ScheduleKind::one_f_one_b) return;
      found.insert({s.tensor, s.pipeline, s.micro_batch, s.virtual_pipeline});
      if (s.virtual_pipeline > 1) return;
      for (int64_t chunks = 1; chunks <= space.most_chunks; ++chunks) {
        spec::Strategy interleaved = s;
        interleaved.virtual_pipeline = chunks;
        if (model.layers % (s.pipeline * chunks) == 0 || chunks == 1) {
          if (spec::is_legal(interleaved, model)) expected.insert({s.tensor, s.pipeline, s.micro_batch, chunks});
        }
      }
    });
  }
  EXPECT_EQ(found, expected);
}

TEST(Space, ContextIsThereWhereItIsAskedFor) {
  const spec::ModelSpec model = grouped_model();
  std::set<std::tuple<int64_t, int64_t, int>> found;
  for (const Cut& cut : cuts({.devices = 16, .global_batch = 16, .most_context = 8}, model)) {
    EXPECT_EQ(cut.tensor * cut.context * cut.pipeline * cut.data, 16);
    found.insert({cut.tensor, cut.context, static_cast<int>(cut.context_kind)});
    for_each_plan({.devices = 16, .global_batch = 16, .most_context = 8}, model, cut, [&](const spec::Strategy& s) {
      spec::Strategy again = s;
      EXPECT_NO_THROW(spec::derive_data(again, model, 16));
      EXPECT_EQ(again.data, s.data);
    });
  }
  std::set<std::tuple<int64_t, int64_t, int>> expected;
  for (const int64_t tensor : {1, 2, 4}) {  // four key heads
    for (const int64_t context : {1, 2, 4, 8}) {
      if (tensor * context > 16) continue;
      expected.insert({tensor, context, 0});
      if (context > 1 && 12 / tensor % context == 0) expected.insert({tensor, context, 1});
    }
  }
  EXPECT_EQ(found, expected);
}

TEST(Space, NoPlanComesTwice) {
  const spec::ModelSpec model = small_model();
  const Space space{.devices = 16, .global_batch = 64};
  std::set<std::tuple<int64_t, int64_t, int64_t, int64_t, int, int, bool, int64_t>> seen;
  int64_t count = 0;
  for (const Cut& cut : cuts(space, model)) {
    for_each_plan(space, model, cut, [&](const spec::Strategy& s) {
      ++count;
      seen.insert({s.tensor, s.pipeline, s.micro_batch, s.virtual_pipeline, static_cast<int>(s.recompute),
                   static_cast<int>(s.schedule), s.sequence_parallel, s.zero_stage});
    });
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), count);
}

class Best : public testing::Test {
 protected:
  spec::ModelSpec model_ = spec::model_preset("gpt-22b");
  spec::Machine machine_ = spec::load_machine(RIDGELINE_SOURCE_DIR "/machines/frontier.toml");
  simulate::Evaluator evaluator_{model_, machine_, cost::recipe("ridgeline"), spec::Precision::bf16};
};

TEST_F(Best, IsTheFastestThatFits) {
  const Space space{.devices = 32, .global_batch = 128};
  const Ranking ranking = rank(evaluator_, space, 5, 1);
  double fastest = 1e300;
  int64_t considered = 0;
  for (const Cut& cut : cuts(space, model_)) {
    for_each_plan(space, model_, cut, [&](const spec::Strategy& strategy) {
      ++considered;
      const simulate::Prediction prediction = evaluator_.predict(strategy);
      if (prediction.fit == simulate::Fit::fits) fastest = std::min(fastest, prediction.step_seconds);
    });
  }
  EXPECT_EQ(ranking.considered, considered);
  ASSERT_EQ(ranking.best.size(), 5u);
  EXPECT_DOUBLE_EQ(ranking.best[0].step_seconds, fastest);
  EXPECT_TRUE(std::is_sorted(ranking.best.begin(), ranking.best.end(),
                             [](const auto& a, const auto& b) { return a.step_seconds < b.step_seconds; }));
}

TEST_F(Best, DoesNotDependOnThreads) {
  const Space space{.devices = 64, .global_batch = 256};
  const Ranking one = rank(evaluator_, space, 20, 1), three = rank(evaluator_, space, 20, 3);
  ASSERT_EQ(one.best.size(), three.best.size());
  for (size_t i = 0; i < one.best.size(); ++i) {
    EXPECT_EQ(one.best[i].step_seconds, three.best[i].step_seconds);
    EXPECT_EQ(one.best[i].strategy.virtual_pipeline, three.best[i].strategy.virtual_pipeline);
    EXPECT_EQ(one.best[i].strategy.zero_stage, three.best[i].strategy.zero_stage);
  }
}

TEST_F(Best, NamesTheNearestWhereNothingFits) {
  const spec::ModelSpec large = spec::model_preset("gpt-1t");
  const simulate::Evaluator evaluator(large, machine_, cost::recipe("ridgeline"), spec::Precision::bf16);
  const Ranking ranking = rank(evaluator, {.devices = 64, .global_batch = 64}, 3, 2);
  EXPECT_TRUE(ranking.best.empty());
  ASSERT_FALSE(ranking.nearest.empty());
  EXPECT_GT(ranking.nearest[0].missing_bytes, 0);
  EXPECT_GT(ranking.nearest[0].prediction.step_seconds, 0);
}

}  // namespace
}  // namespace ridgeline::search
