// Spaces of studies and recorded tables as points.
#include "search/tune/points.h"

#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "search/tune/dominance.h"
#include "search/tune/replay.h"
#include "search/tune/space_description.h"

namespace ridgeline::search {
namespace {

const char* kHeader =
    "tensor,pipeline,data,virtual_pipeline,micro_batch,recompute,zero_stage,sequence_parallel,overlap,outcome,step_"
    "seconds,"
    "memory_gib\n";

Replay replay(const std::string& rows) {
  return replay_of(simulate::parse_table(kHeader + rows, "runs.csv"), spec::model_preset("gpt-22b"), 16, 64);
}

std::string fault(const std::string& rows) {
  try {
    replay(rows);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SpaceDescription, HoldsWhatItsListsAndConstraintsAllow) {
  SpaceDescription space;
  space.tensor = {2, 4};
  space.recompute = "full, selective";
  space.sequence_parallel = "off";
  space.constraints = "tensor * pipeline <= 8 and micro_batches >= pipeline";
  const PointSet points = enumerate(space, spec::model_preset("gpt-22b"), {.devices = 16, .global_batch = 64});
  ASSERT_GT(points.size(), 20u);
  std::set<int64_t> tensors;
  for (size_t i = 0; i < points.size(); ++i) {
    const spec::Strategy& strategy = points.at(i).strategy;
    tensors.insert(strategy.tensor);
    EXPECT_LE(strategy.tensor * strategy.pipeline, 8);
    EXPECT_GE(strategy.micro_batches(), strategy.pipeline);
    EXPECT_NE(strategy.recompute, spec::Recompute::none);
    EXPECT_FALSE(strategy.sequence_parallel);
    EXPECT_EQ(points.find(points.key(i)), i);
  }
  EXPECT_EQ(tensors, (std::set<int64_t>{2, 4}));
  EXPECT_EQ(points.find("tensor=3"), std::nullopt);
}

TEST(SpaceDescription, SharesSequencesWhereAsked) {
  SpaceDescription space;
  const spec::ModelSpec model = spec::model_preset("gpt-22b");
  const StudySize size{.devices = 16, .global_batch = 64};
  const size_t plain = enumerate(space, model, size).size();
  space.context = {1, 2, 4};
  space.context_kind = "ring, all_to_all";
  space.constraints = "context * tensor <= 8";
  const PointSet points = enumerate(space, model, size);
  EXPECT_GT(points.size(), plain);
  std::set<std::pair<int64_t, spec::ContextKind>> seen;
  for (size_t i = 0; i < points.size(); ++i) {
    const spec::Strategy& strategy = points.at(i).strategy;
    seen.insert({strategy.context, strategy.context_kind});
    EXPECT_LE(strategy.context * strategy.tensor, 8);
    EXPECT_EQ(numbers_of_key(points.key(i)).at("data"), static_cast<double>(strategy.data));
    // Keys of studies from before the axis was there stay what they were.
    EXPECT_EQ(points.key(i).find("context") == std::string::npos, strategy.context == 1) << points.key(i);
  }
  using Kind = spec::ContextKind;
  EXPECT_EQ(seen, (std::set<std::pair<int64_t, Kind>>{
                      {1, Kind::ring}, {2, Kind::ring}, {2, Kind::all_to_all}, {4, Kind::ring}, {4, Kind::all_to_all}}));
}

TEST(SpaceDescription, LaysExpertsInEveryWay) {
  SpaceDescription space;
  space.tensor = {1, 2};
  space.recompute = "full";
  const spec::ModelSpec model = spec::model_preset("mixtral-8x7b");
  const StudySize size{.devices = 16, .global_batch = 64};
  const PointSet points = enumerate(space, model, size);
  std::set<std::pair<int64_t, bool>> seen;
  for (size_t i = 0; i < points.size(); ++i) {
    seen.insert({points.at(i).strategy.expert, points.at(i).strategy.expert_tensor == 1});
  }
  EXPECT_EQ(seen, (std::set<std::pair<int64_t, bool>>{{1, false}, {2, false}, {4, false}, {8, false},
                                                      {1, true}, {2, true}, {4, true}, {8, true}}));
  space.expert = {8};
  space.expert_tensor = {0};
  const PointSet narrow = enumerate(space, model, size);
  for (size_t i = 0; i < narrow.size(); ++i) EXPECT_EQ(narrow.at(i).strategy.expert, 8);
  EXPECT_LT(narrow.size() * 4, points.size());
}

TEST(SpaceDescription, AccumulationDecidesTheGlobalBatch) {
  SpaceDescription space;
  space.preset = "frontier-study";
  const PointSet points = enumerate(space, spec::model_preset("gpt-175b"), {.devices = 128, .devices_per_node = 8});
  std::set<int64_t> counts, devices;
  for (size_t i = 0; i < points.size(); ++i) {
    counts.insert(points.at(i).strategy.micro_batches());
    devices.insert(points.at(i).devices);
    EXPECT_GE(points.at(i).strategy.micro_batch, 4);
    EXPECT_LE(points.at(i).strategy.micro_batch, 20);
    EXPECT_EQ(points.at(i).strategy.recompute, spec::Recompute::full);
  }
  EXPECT_EQ(counts, (std::set<int64_t>{5, 10}));
  std::set<std::string> names;
  for (const Dimension& dimension : points.dimensions()) names.insert(dimension.name);
  EXPECT_EQ(names,
            (std::set<std::string>{"devices", "tensor", "pipeline", "micro_batch", "micro_batches", "zero_stage"}));
  EXPECT_EQ(devices, (std::set<int64_t>{96, 128}));
}

TEST(SpaceDescription, SaysWhatIsWrong) {
  SpaceDescription space;
  space.recompute = "selectiv";
  const auto message = [&] {
    try {
      enumerate(space, spec::model_preset("gpt-22b"), {.devices = 16, .global_batch = 64});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message().find("did you mean 'selective'"), std::string::npos);
  space.recompute = "";
  space.tensor = {7};
  EXPECT_NE(message().find("no legal strategy"), std::string::npos);
}

TEST(PointSet, OnlyWhatDiffersIsADimension) {
  const Replay table = replay(
      "1,1,16,1,1,none,0,0,0,ok,3.5,20\n"
      "4,1,4,1,1,full,0,0,0,oom,,90\n"
      "4,2,2,1,2,attn_only,1,1,1,ok,2.5,70\n");
  std::vector<std::string> names;
  for (const Dimension& dimension : table.points.dimensions()) names.push_back(dimension.name);
  EXPECT_EQ(names, (std::vector<std::string>{"tensor", "pipeline", "micro_batch", "zero_stage", "recompute",
                                             "sequence_parallel", "overlap"}));
  EXPECT_EQ(table.points.coordinates(1)[0], 2);  // log2 of tensor
  EXPECT_EQ(table.points.label(2, 4), "selective");
  EXPECT_TRUE(table.selective_is_attention);
  const double gib = 1024.0 * 1024.0 * 1024.0;
  EXPECT_EQ(table.trial(0, 80 * gib).costs, std::vector<double>{3.5});
  EXPECT_EQ(table.trial(1, 80 * gib).outcome, Outcome::out_of_memory);
  EXPECT_DOUBLE_EQ(table.trial(1, 80 * gib).missing_bytes, 10 * gib);
}

TEST(Replay, RefusesWhatIsNoStrategy) {
  EXPECT_NE(fault("3,1,4,1,1,none,0,0,0,ok,3.5,20\n").find("runs.csv:2"), std::string::npos);
  EXPECT_NE(fault("1,1,8,1,1,none,0,0,0,ok,3.5,20\n").find("'data'"), std::string::npos);
  EXPECT_NE(fault("1,1,16,1,1,none,0,0,0,ok,,20\n").find("'step_seconds'"), std::string::npos);
  EXPECT_NE(fault("1,1,16,1,1,none,0,0,0,ok,-1,20\n").find("'step_seconds'"), std::string::npos);
  EXPECT_NE(fault("1,1,16,1,1,none,4,0,0,ok,1,20\n").find("'zero_stage'"), std::string::npos);
  EXPECT_NE(fault("1,1,16,1,1,some,0,0,0,ok,1,20\n").find("'recompute'"), std::string::npos);
  EXPECT_NE(fault("1,1,16,1,1,none,0,0,0,fine,1,20\n").find("'outcome'"), std::string::npos);
  EXPECT_NE(fault("1,1,16,1,1,none,0,0,0,ok,1,20\n1,1,16,1,1,none,0,0,0,ok,2,20\n").find("twice"), std::string::npos);
  EXPECT_NE(fault("").find("no rows"), std::string::npos);
}

TEST(Dominance, OrdersPointsByWhatSurelyNeedsMore) {
  const Replay table = replay(
      "1,1,16,1,1,full,1,0,0,ok,3,20\n"
      "1,1,16,1,2,full,1,0,0,ok,3,20\n"
      "1,1,16,1,2,none,0,0,0,ok,3,20\n"
      "1,1,16,1,1,none,1,0,0,ok,3,20\n"
      "1,1,16,1,2,full,1,0,1,ok,3,20\n");
  const Dominance dominance(table.points);
  std::set<size_t> heavier, lighter;
  dominance.for_each_heavier(0, [&](size_t other) { heavier.insert(other); });
  dominance.for_each_lighter(2, [&](size_t other) { lighter.insert(other); });
  EXPECT_EQ(heavier, (std::set<size_t>{1, 2, 3}));
  EXPECT_EQ(lighter, (std::set<size_t>{0, 1, 3}));
}

}  // namespace
}  // namespace ridgeline::search
