// What a profile holds: every action and message of its steps and no others, nested as they were, on one clock.
#include "train/step_profile.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cost/step_schedule.h"
#include "train/clock_offset.h"
#include "train/small_run.h"

namespace ridgeline::train {
namespace {

struct Slice {
  std::string name, category;
  double begin = 0, end = 0;
};
using Threads = std::map<std::pair<int64_t, int64_t>, std::vector<Slice>>;  // by process and thread

Threads read_slices(const std::filesystem::path& path) {
  std::ifstream stream(path);
  Threads threads;
  const nlohmann::json document = nlohmann::json::parse(stream);
  for (const auto& event : document.at("traceEvents")) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"], end = begin + event["dur"].get<double>();
    threads[{event["pid"], event["tid"]}].push_back({event["name"], event["cat"], begin, end});
  }
  return threads;
}

// Slices of one thread lie in one another or apart.
void expect_nested(std::vector<Slice> slices) {
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  std::vector<const Slice*> open;
  for (const Slice& slice : slices) {
    ASSERT_LE(slice.begin, slice.end) << slice.name;
    while (!open.empty() && open.back()->end <= slice.begin + 1e-4) open.pop_back();
    if (!open.empty()) EXPECT_LE(slice.end, open.back()->end + 2e-3) << slice.name << " leaves " << open.back()->name;
    open.push_back(&slice);
  }
}

class ProfileTest : public testing::Test {
 protected:
  void SetUp() override { write_tokens((folder_.path() / "tokens").string(), 101, 20000); }

  Threads profile_of(const spec::TrainSpec& spec, int64_t ranks, spec::StepRange steps) {
    const std::filesystem::path path = folder_.path() / "trace.json";
    with_trainers(spec, ranks, [&](Trainer& trainer, const mesh::Mesh& mesh) {
      const platform::Device device = platform::Device::select("cpu");
      StepProfile profile(mesh, device, steps);
      trainer.observe_actions([&](const schedule::Action& action) { profile.action(action); });
      trainer.observe_phases([&](const char* phase) { profile.phase(phase); });
      for (int64_t step = 1; step <= 4; ++step) {
        profile.begin(step);
        trainer.step(step - 1);
        if (profile.end(step)) profile.write(path);
      }
      mesh.world().barrier().wait();
    });
    return read_slices(path);
  }

  spec::TrainSpec small() const { return small_spec((folder_.path() / "tokens").string()); }

  TemporaryFolder folder_;
};

TEST_F(ProfileTest, HoldsEveryActionOfItsStepsInOrder) {
  spec::TrainSpec spec = small();
  spec.strategy.pipeline = 2;
  const Threads threads = profile_of(spec, 2, {2, 3});
  spec::derive_data(spec.strategy, spec.model, 2);
  const schedule::Schedule schedule = cost::step_schedule(spec.model, spec.strategy);
  for (int64_t rank = 0; rank < 2; ++rank) {
    std::vector<std::string> actions, expected, steps;
    for (const Slice& slice : threads.at({rank, 0})) {
      if (slice.category == "step") steps.push_back(slice.name);
      if (slice.category != "step" && slice.category != "phase" && slice.category != "wait")
        actions.push_back(slice.name);
    }
    for (int step = 0; step < 2; ++step) {
      for (const schedule::Action& action : schedule.actions[rank]) expected.push_back(schedule::trace_name(action));
    }
    EXPECT_EQ(actions, expected);
    EXPECT_EQ(steps, (std::vector<std::string>{"step 2", "step 3"}));
  }
}

TEST_F(ProfileTest, EveryWaitIsOfAMessageAndAllNest) {
  spec::TrainSpec spec = small();
  spec.strategy.tensor = 2;
  spec.strategy.pipeline = 2;
  spec.strategy.zero_stage = 3;
  spec.strategy.micro_batch = 2;
  const Threads threads = profile_of(spec, 8, {2, 2});
  std::set<int64_t> processes;
  for (const auto& [place, slices] : threads) {
    processes.insert(place.first);
    expect_nested(slices);
  }
  EXPECT_EQ(processes.size(), 8u);
  for (int64_t rank = 0; rank < 8; ++rank) {
    std::multiset<std::string> waits, messages;
    for (const auto& [place, slices] : threads) {
      if (place.first != rank) continue;
      for (const Slice& slice : slices) {
        if (slice.category == "wait") waits.insert(slice.name.substr(6));
        if (slice.category == "communication") messages.insert(slice.name);
      }
    }
    EXPECT_GT(messages.size(), 20u);
    EXPECT_EQ(waits, messages);
  }
}

// What a message took on two ranks overlaps in time: neither can end before the other has begun.
TEST_F(ProfileTest, RanksLieOnOneClock) {
  spec::TrainSpec spec = small();
  spec.strategy.tensor = 2;
  const Threads threads = profile_of(spec, 2, {2, 2});
  const std::vector<Slice>& first = threads.at({0, 1});
  const std::vector<Slice>& second = threads.at({1, 1});
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    ASSERT_EQ(first[i].name, second[i].name);
    EXPECT_LE(first[i].begin, second[i].end + 2e-3);
    EXPECT_LE(second[i].begin, first[i].end + 2e-3);
  }
}

TEST(ClockOffset, FindsHowFarClocksAreApart) {
  const std::vector<double> ahead = {0.0, 0.0, 5.0, 5.0, -3000.0};
  const std::vector<std::string> machine = {"a", "a", "b", "b", "c"};
  mesh::run_ranks(5, [&](int64_t rank, std::shared_ptr<mesh::Store> store) {
    const mesh::Mesh mesh({.data = 5}, rank, store, platform::Device::select("cpu"), mesh::rank_options());
    const ClockOffset offset = clock_offset(mesh, machine[rank], [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count() + ahead[rank];
    });
    EXPECT_LE(std::abs(offset.seconds + ahead[rank]), offset.uncertainty + 1e-9) << rank;
    EXPECT_EQ(offset.uncertainty == 0, machine[rank] == "a");
    mesh.world().barrier().wait();
  });
}

}  // namespace
}  // namespace ridgeline::train
