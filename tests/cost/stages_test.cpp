#include "cost/stages.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "spec/parameters.h"

namespace ridgeline::cost {
namespace {

using spec::Range;

TEST(Stages, ABalancedPipelineRelievesTheStageOfTheHead) {
  spec::ModelSpec model;  // a GPT-2 124M shape: the head is as much work as 4.46 layers
  model.layers = 12;
  model.hidden = 768;
  model.heads = 12;
  model.vocabulary = 50257;
  model.sequence = 1024;
  spec::Strategy strategy;
  strategy.pipeline = 3;
  // 5 layers, 6 layers, 1 layer and the head (5.46 layers): no cut has a fullest stage below 6.
  const std::vector<double> work = unit_work(model, strategy.recompute);
  const double head_in_layers = work.back() / work[1];
  EXPECT_NEAR(head_in_layers, 50257.0 / (12 * 768 + 2 * 1024), 1e-9);
  const std::vector<Range> expected = {{0, 6}, {6, 12}, {12, 14}};
  EXPECT_EQ(stage_units(model, strategy), expected);
}

TEST(Stages, ExplicitLayersAreFollowed) {
  spec::ModelSpec model;
  model.layers = 4;
  spec::Strategy strategy;
  strategy.pipeline = 2;
  strategy.stage_layers = {1, 3};
  const std::vector<Range> expected = {{0, 2}, {2, 6}};
  EXPECT_EQ(stage_units(model, strategy), expected);
}

TEST(Stages, RefuseWhatDoesNotFit) {
  spec::ModelSpec model;
  model.layers = 4;
  spec::Strategy strategy;
  strategy.pipeline = 5;
  EXPECT_THROW(stage_units(model, strategy), InputError);
  strategy.pipeline = 2;
  strategy.stage_layers = {1, 1, 2};
  EXPECT_THROW(stage_units(model, strategy), InputError);
  strategy.stage_layers = {1, 2};
  EXPECT_THROW(stage_units(model, strategy), InputError);
  strategy.stage_layers = {4, 0};
  EXPECT_THROW(stage_units(model, strategy), InputError);
}

}  // namespace
}  // namespace ridgeline::cost
