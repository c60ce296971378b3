// The search as a whole, on spaces whose truth is the simulator of another machine and program, distorted.
#include "search/tune/searcher.h"

#include <gtest/gtest.h>

#include <cmath>
#include <queue>
#include <random>
#include <set>

#include "search/tune/dominance.h"
#include "search/tune/guesses.h"
#include "search/tune/space_description.h"
#include "search/tune/transfer.h"
#include "source_folder.h"

namespace ridgeline::search {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
constexpr double kLimit = 80 * kGib;

// What each point takes in truth.
struct Truth {
  std::vector<double> seconds, peak;
  double fastest = 1e300;
  Trial trial(size_t point) const {
    if (peak[point] > kLimit) return {point, Outcome::out_of_memory, {}, 0, peak[point] - kLimit};
    return {point, Outcome::ok, {seconds[point]}, peak[point], 0};
  }
};

class Search : public testing::Test {
 protected:
  static std::vector<Guess> predicted(const PointSet& points, const std::string& machine, const std::string& program) {
    simulate::Evaluator evaluator(spec::model_preset("gpt-22b"),
                                  spec::load_machine(RIDGELINE_SOURCE_DIR "/machines/" + machine + ".toml"),
                                  cost::recipe(program), spec::Precision::bf16);
    return simulator_guesses(evaluator, points, {Objective::step_seconds});
  }

  // Each value of each dimension has an effect of its own, and each point a small one.
  static Truth distorted(const PointSet& points, const std::vector<Guess>& from, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal;
    std::vector<std::vector<std::pair<double, double>>> effects;
    for (const Dimension& dimension : points.dimensions()) {
      auto& row = effects.emplace_back();
      for (size_t i = 0; i < dimension.values.size(); ++i)
        row.emplace_back(0.04 * normal(generator), 0.12 * normal(generator));
    }
    Truth truth;
    for (size_t i = 0; i < points.size(); ++i) {
      double time = 0.01 * normal(generator), memory = 0.03 * normal(generator) + 0.7;
      for (size_t d = 0; d < effects.size(); ++d) {
        time += effects[d][points.level(i, d)].first;
        memory += effects[d][points.level(i, d)].second;
      }
      truth.seconds.push_back(from[i].costs[0] * std::exp(time));
      truth.peak.push_back(from[i].peak_bytes * std::exp(memory));
      if (truth.peak[i] <= kLimit) truth.fastest = std::min(truth.fastest, truth.seconds[i]);
    }
    return truth;
  }

  SearchOptions options(uint64_t seed) const {
    SearchOptions options;
    options.seed = seed;
    options.limit_bytes = kLimit;
    return options;
  }

  PointSet points_ = enumerate({}, spec::model_preset("gpt-22b"), {.devices = 64, .global_batch = 256});
  std::vector<Guess> guesses_ = predicted(points_, "selene", "ridgeline");
  Truth truth_ = distorted(points_, predicted(points_, "frontier", "megatron"), 1);
};

// Trials until within `share` of the fastest.
struct Course {
  int to_best = 1000, failures = 0, later_failures = 0;
};

Course run(Searcher searcher, const Truth& truth, int trials, int free_trials) {
  Course course;
  for (int i = 1; i <= trials; ++i) {
    const auto point = searcher.ask();
    if (!point) break;
    const Trial trial = truth.trial(*point);
    searcher.tell(trial);
    if (trial.outcome != Outcome::ok) {
      ++course.failures;
      course.later_failures += i > free_trials;
    } else if (trial.costs[0] <= 1.01 * truth.fastest) {
      course.to_best = std::min(course.to_best, i);
    }
  }
  return course;
}

TEST_F(Search, WithPredictionsIsThereInTwentyTrials) {
  std::vector<int> to_best;
  for (unsigned seed = 1; seed <= 7; ++seed) {
    const Truth truth = distorted(points_, predicted(points_, "frontier", "megatron"), seed);
    const Course course = run(Searcher(points_, guesses_, options(seed)), truth, 60, 10);
    to_best.push_back(course.to_best);
    EXPECT_LE(course.later_failures, 5) << "seed " << seed;
  }
  std::sort(to_best.begin(), to_best.end());
  EXPECT_LE(to_best[3], 20);
}

// Ratios to predictions that were seen on half as many devices, where the machine is off in the same ways.
TEST_F(Search, RatiosOfAnEarlierStudyImproveTheGuesses) {
  const PointSet fewer = enumerate({}, spec::model_preset("gpt-22b"), {.devices = 32, .global_batch = 128});
  const std::vector<Guess> fewer_guesses = predicted(fewer, "selene", "ridgeline");
  const std::vector<Guess> fewer_truth = predicted(fewer, "frontier", "megatron");
  const std::vector<Guess> truth = predicted(points_, "frontier", "megatron");
  std::vector<EarlierTrial> earlier;
  for (size_t i = 0; i < fewer.size(); i += fewer.size() / 60) {
    earlier.push_back({fewer.key(i), std::log(fewer_truth[i].costs[0] / fewer_guesses[i].costs[0]),
                       std::log(fewer_truth[i].peak_bytes / fewer_guesses[i].peak_bytes)});
  }
  earlier.push_back({"tensor=8", 3.0, 3.0});  // says too little
  const Transfer transfer = transferred(points_, guesses_, earlier);
  EXPECT_EQ(transfer.costs, earlier.size() - 1);
  EXPECT_EQ(transfer.peaks, earlier.size() - 1);
  const auto error = [&](const std::vector<Guess>& guesses, bool of_time) {
    double sum = 0;
    for (size_t i = 0; i < points_.size(); ++i) {
      sum += std::abs(of_time ? std::log(guesses[i].costs[0] / truth[i].costs[0])
                              : std::log(guesses[i].peak_bytes / truth[i].peak_bytes));
    }
    return sum / static_cast<double>(points_.size());
  };
  EXPECT_LT(error(transfer.guesses, true), 0.3 * error(guesses_, true));
  EXPECT_LT(error(transfer.guesses, false), 0.7 * error(guesses_, false));
}

TEST_F(Search, WithoutEarlierTrialsGuessesStay) {
  const Transfer transfer = transferred(points_, guesses_, {});
  for (size_t i = 0; i < points_.size(); ++i) ASSERT_EQ(transfer.guesses[i].costs, guesses_[i].costs);
}

TEST_F(Search, BlindNeedsMoreAndFindsIt) {
  std::vector<int> to_best;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    to_best.push_back(run(Searcher(points_, {}, options(seed)), truth_, 100, 20).to_best);
  }
  std::sort(to_best.begin(), to_best.end());
  EXPECT_LE(to_best[2], 80);
}

// Half of the points crash for a reason of their own: two dimensions together.
TEST_F(Search, LearnsFailuresThatNothingTells) {
  for (const bool blind : {false, true}) {
    size_t doomed = 0;
    const auto crashes = [&](size_t point) {
      const spec::Strategy& s = points_.at(point).strategy;
      return (s.tensor >= 4) == (s.recompute == spec::Recompute::full);
    };
    for (size_t i = 0; i < points_.size(); ++i) doomed += crashes(i);
    EXPECT_GT(doomed, points_.size() * 2 / 5);
    EXPECT_LT(doomed, points_.size() * 3 / 5);
    Searcher searcher(points_, blind ? std::vector<Guess>() : guesses_, options(2));
    int late = 0;
    for (int i = 1; i <= 120; ++i) {
      const auto point = searcher.ask();
      ASSERT_TRUE(point.has_value());
      const bool fails = crashes(*point);
      searcher.tell(fails ? Trial{*point, Outcome::crashed}
                          : Trial{*point, Outcome::ok, {truth_.seconds[*point]}, 1e9});
      late += fails && i > 20;
    }
    EXPECT_LE(late, 10) << (blind ? "blind" : "with predictions");
  }
}

TEST_F(Search, IsAFunctionOfWhatItWasTold) {
  Searcher live(points_, guesses_, options(3));
  std::vector<Trial> told;
  std::vector<size_t> running;
  std::mt19937 generator(5);
  for (int i = 0; i < 45; ++i) {
    running.push_back(*live.ask());
    if (running.size() < 6) continue;
    const size_t ended = generator() % running.size();
    told.push_back(truth_.trial(running[ended]));
    live.tell(told.back());
    running.erase(running.begin() + static_cast<ptrdiff_t>(ended));
  }
  Searcher resumed(points_, guesses_, options(3));
  for (const Trial& trial : told) resumed.tell(trial);
  std::shuffle(running.begin(), running.end(), generator);
  for (const size_t point : running) resumed.mark_pending(point);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(resumed.ask(), live.ask());
}

TEST_F(Search, NeverRepeatsAndNeverTriesWhatAFailureRulesOut) {
  Searcher searcher(points_, {}, options(4));
  const Dominance dominance(points_);
  std::set<size_t> seen, ruled_out;
  for (int i = 0; i < 150; ++i) {
    const auto point = searcher.ask();
    ASSERT_TRUE(point.has_value());
    EXPECT_TRUE(seen.insert(*point).second);
    EXPECT_EQ(ruled_out.count(*point), 0u);
    const Trial trial = truth_.trial(*point);
    searcher.tell(trial);
    if (trial.outcome == Outcome::out_of_memory) {
      dominance.for_each_heavier(*point, [&](size_t other) { ruled_out.insert(other); });
    }
  }
  EXPECT_FALSE(ruled_out.empty());
}

TEST_F(Search, EndsWhenNothingIsLeft) {
  SpaceDescription small;
  small.tensor = {8};
  small.pipeline = {8};
  small.recompute = "full";
  const PointSet points = enumerate(small, spec::model_preset("gpt-22b"), {.devices = 64, .global_batch = 8});
  Searcher searcher(points, {}, options(1));
  size_t count = 0;
  while (const auto point = searcher.ask()) {
    searcher.tell({*point, Outcome::ok, {1.0 + static_cast<double>(*point)}});
    ++count;
  }
  EXPECT_EQ(count, points.size());
}

TEST_F(Search, EndsWhereAllThatIsLeftFails) {
  Truth cramped = truth_;
  std::vector<double> sorted = cramped.peak;
  std::sort(sorted.begin(), sorted.end());
  const size_t fitting = 30;
  for (double& peak : cramped.peak) peak *= kLimit / sorted[fitting - 1];
  Searcher searcher(points_, guesses_, options(1));
  const Dominance dominance(points_);
  std::set<size_t> known;  // tried, or ruled out by a failure
  size_t count = 0;
  for (; const auto point = searcher.ask(); ++count) {
    const Trial trial = cramped.trial(*point);
    searcher.tell(trial);
    known.insert(*point);
    if (trial.outcome == Outcome::ok) continue;
    dominance.for_each_heavier(*point, [&](size_t other) { known.insert(other); });
  }
  size_t overlooked = 0;
  for (size_t i = 0; i < points_.size(); ++i) overlooked += cramped.peak[i] <= kLimit && known.count(i) == 0;
  EXPECT_LE(overlooked, 1u);
  EXPECT_LT(count, 3 * fitting);
}

TEST_F(Search, FaultsOfTheMachineAreTriedAgain) {
  Searcher searcher(points_, guesses_, options(1));
  const auto first = searcher.ask();
  searcher.tell({*first, Outcome::infrastructure});
  EXPECT_EQ(searcher.ask(), first);
}

TEST_F(Search, WeighsSeveralObjectives) {
  std::vector<Guess> both = guesses_;
  for (size_t i = 0; i < both.size(); ++i) both[i].costs.push_back(both[i].peak_bytes);
  SearchOptions two = options(1);
  two.objectives = 2;
  Searcher searcher(points_, both, two);
  double fastest = 1e300, leanest = 1e300;
  for (int i = 0; i < 40; ++i) {
    const size_t point = *searcher.ask();
    Trial trial = truth_.trial(point);
    if (trial.outcome == Outcome::ok) {
      trial.costs.push_back(truth_.peak[point]);
      fastest = std::min(fastest, truth_.seconds[point]);
      leanest = std::min(leanest, truth_.peak[point]);
    }
    searcher.tell(trial);
  }
  double least = 1e300;
  for (const double peak : truth_.peak) least = std::min(least, peak);
  EXPECT_LE(fastest, 1.05 * truth_.fastest);
  EXPECT_LE(leanest, 1.2 * least);
}

// A simulated clock: 64 slots, trials of 5 to 50 seconds, and one coordinator whose every suggestion takes 50 ms (what
// a suggestion may take; bench/tune_replay.cpp measures what it does).
TEST_F(Search, KeepsSixtyFourSlotsBusy) {
  Searcher searcher(points_, guesses_, options(6));
  std::mt19937 generator(7);
  std::uniform_real_distribution<double> duration(5, 50);
  using Event = std::pair<double, size_t>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> running;
  double coordinator = 0, busy = 0, clock = 0, fastest = 1e300;
  const auto start = [&](double slot_free_at) {
    const auto point = searcher.ask();
    ASSERT_TRUE(point.has_value());
    coordinator = std::max(coordinator, slot_free_at) + 0.05;
    const double takes = duration(generator);
    busy += takes;
    running.emplace(coordinator + takes, *point);
  };
  for (int i = 0; i < 64; ++i) start(0);
  std::set<size_t> tried;
  for (int ended = 0; ended < 600; ++ended) {
    const auto [at, point] = running.top();
    running.pop();
    clock = at;
    EXPECT_TRUE(tried.insert(point).second);
    const Trial trial = truth_.trial(point);
    if (trial.outcome == Outcome::ok) fastest = std::min(fastest, trial.costs[0]);
    searcher.tell(trial);
    start(clock);
  }
  double unfinished = 0;
  for (; !running.empty(); running.pop()) unfinished += running.top().first - clock;
  EXPECT_GE((busy - unfinished) / (64 * clock), 0.95);
  EXPECT_LE(fastest, 1.01 * truth_.fastest);
}

}  // namespace
}  // namespace ridgeline::search
