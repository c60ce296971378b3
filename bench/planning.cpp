// How fast planning is, beside the figures of its peers: closed-form evaluations and event simulations a second on one
// core, and the whole legal space of the 1T model on 3,072 devices of Frontier.
//
//   bench_planning [FOLDER ...]    prints a line each, with the figure that it must reach and that of a peer; then how
//                                  far off predictions are on the recorded runs in validation/ and in these folders
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "planning_accuracy.h"
#include "search/best.h"

namespace {

using namespace ridgeline;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Calls a second of `work`, for about a second.
double rate_of(const std::function<void()>& work) {
  int64_t calls = 0;
  const auto start = Clock::now();
  while (seconds_since(start) < 1.0) {
    for (int i = 0; i < 16; ++i) work();
    calls += 16;
  }
  return static_cast<double>(calls) / seconds_since(start);
}

double closed_forms_a_second(simulate::Evaluator evaluator, const search::Space& space) {
  const auto start = Clock::now();
  int64_t count = 0;
  double sum = 0;
  while (seconds_since(start) < 1.0) {
    for (const search::Cut& cut : search::cuts(space, evaluator.model())) {
      search::for_each_plan(space, evaluator.model(), cut, [&](const spec::Strategy& strategy) {
        sum += evaluator.predict(strategy).step_seconds;
        ++count;
      });
    }
  }
  if (!(sum > 0)) std::puts("a prediction is not above zero");
  return static_cast<double>(count) / seconds_since(start);
}

double vee_forms_a_second(simulate::Evaluator evaluator) {
  std::vector<spec::Strategy> strategies;
  for (const int64_t tensor : {1, 2, 4, 8}) {
    for (const int64_t pipeline : {4, 8, 16, 32}) {
      for (const int64_t micro_batch : {1, 2, 4}) {
        spec::Strategy strategy;
        strategy.tensor = tensor;
        strategy.pipeline = pipeline;
        strategy.micro_batch = micro_batch;
        strategy.schedule = spec::ScheduleKind::zero_bubble_v;
        strategy.global_batch = 3072;
        spec::derive_data(strategy, evaluator.model(), 1024);
        strategies.push_back(strategy);
      }
    }
  }
  double sum = 0;
  return rate_of([&] {
           for (const spec::Strategy& strategy : strategies) sum += evaluator.predict(strategy).step_seconds;
         }) *
         static_cast<double>(strategies.size());
}

double event_simulations_a_second() {
  const std::vector<simulate::ChunkDurations> stages(64, simulate::ChunkDurations{1e-3, 2e-3, 0});
  double sum = 0;
  return rate_of([&] {
    const auto schedule = schedule::make_schedule(spec::ScheduleKind::one_f_one_b, 64, 100);
    sum += simulate::play(schedule, stages, 1e-5, false).seconds;
  });
}

double played_again_a_second() {
  const std::vector<simulate::ChunkDurations> stages(64, simulate::ChunkDurations{1e-3, 2e-3, 0});
  const auto schedule = schedule::make_schedule(spec::ScheduleKind::one_f_one_b, 64, 100);
  double sum = 0;
  return rate_of([&] { sum += simulate::play(schedule, stages, 1e-5, false).seconds; });
}

}  // namespace

int main(int argc, char** argv) {
  const spec::ModelSpec model = spec::model_preset("gpt-1t");
  const spec::Machine machine = spec::load_machine("frontier");
  const simulate::Evaluator evaluator(model, machine, cost::recipe("ridgeline"), spec::Precision::bf16);
  const search::Space space{.devices = 3072, .global_batch = 3072};

  std::printf("closed-form evaluations a second, one core       %12.0f   (must 100,000; Calculon 70 to 300)\n",
              closed_forms_a_second(evaluator, space));
  std::printf("the same of zero-bubble V schedules              %12.0f   (must 100,000)\n",
              vee_forms_a_second(evaluator));
  std::printf("event simulations, 64 stages, 100 micro-batches  %12.0f   (must 1,000), schedule made each time\n",
              event_simulations_a_second());
  std::printf("the same, schedule made once                     %12.0f\n", played_again_a_second());
  const auto start = Clock::now();
  const search::Ranking ranking = search::rank(evaluator, space, 10, 2);
  std::printf(
      "whole space of 1T on 3,072 devices, two threads  %12.4f s (must 2; Calculon over 8 minutes), %lld strategies\n",
      seconds_since(start), static_cast<long long>(ranking.considered));
  std::vector<std::string> folders = {RIDGELINE_VALIDATION};
  folders.insert(folders.end(), argv + 1, argv + argc);
  bench::print_accuracy(folders);
  return 0;
}
