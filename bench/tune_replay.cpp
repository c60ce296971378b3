// How many trials a search of a recorded table takes: ours with the simulator as its prior, and blind.
//
//   bench_tune_replay TABLE --model gpt-175b --machine selene --devices 512 --global-batch 1536
//
// Prints a line for each search and seed, "SEARCH SEED within1 within5 failures later_failures best", which
// bench/tune_replay.py sets beside those of other tuners: the trial at which 1 % and 5 % of the table's best were
// reached (0: never), failures, those after the first ten, best time over the table's best. With --latency instead: how
// long the last 100 of 1,000 suggestions took, and the longest of all, with --slots trials at once.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>

#include "search/tune/guesses.h"
#include "search/tune/replay.h"
#include "search/tune/searcher.h"

namespace {

using namespace ridgeline;

struct Score {
  int within1 = 0, within5 = 0, failures = 0, later_failures = 0;
  double best = 1e300;
};

Score replay_search(const search::Replay& replay, const std::vector<search::Guess>& guesses, uint64_t seed, int trials,
                    double limit_bytes, double fastest, bool trace) {
  search::SearchOptions options;
  options.seed = seed;
  options.limit_bytes = limit_bytes;
  search::Searcher searcher(replay.points, guesses, options);
  Score score;
  for (int trial = 1; trial <= trials; ++trial) {
    const auto point = searcher.ask();
    if (!point) break;
    const search::Trial result = replay.trial(*point, limit_bytes);
    searcher.tell(result);
    if (trace) {
      std::fprintf(stderr, "%3d %s %-14s %8.3f %6.1f GiB\n", trial, replay.points.key(*point).c_str(),
                   search::to_string(result.outcome).c_str(), result.costs.empty() ? 0 : result.costs[0],
                   replay.rows[*point].peak_bytes / 1073741824.0);
    }
    if (result.outcome != search::Outcome::ok) {
      ++score.failures;
      if (trial > 10) ++score.later_failures;
      continue;
    }
    score.best = std::min(score.best, result.costs[0] / fastest);
    if (score.within1 == 0 && score.best <= 1.01) score.within1 = trial;
    if (score.within5 == 0 && score.best <= 1.05) score.within5 = trial;
  }
  return score;
}

void print_latency(const search::Replay& replay, const std::vector<search::Guess>& guesses, double limit_bytes,
                   size_t slots) {
  search::SearchOptions options;
  options.limit_bytes = limit_bytes;
  search::Searcher searcher(replay.points, guesses, options);
  std::vector<double> milliseconds;
  std::deque<size_t> running;
  for (int trial = 0; trial < 1000; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    const auto point = searcher.ask();
    milliseconds.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    if (!point) break;
    running.push_back(*point);
    if (running.size() < slots) continue;
    searcher.tell(replay.trial(running.front(), limit_bytes));
    running.pop_front();
  }
  const double longest = *std::max_element(milliseconds.begin(), milliseconds.end());
  std::vector<double> last(milliseconds.end() - std::min<ptrdiff_t>(100, milliseconds.size()), milliseconds.end());
  std::sort(last.begin(), last.end());
  std::printf("%zu suggestions, %zu points: of the last %zu median %.1f ms, longest %.1f ms; longest of all %.1f ms\n",
              milliseconds.size(), replay.points.size(), last.size(), last[last.size() / 2], last.back(), longest);
}

}  // namespace

int main(int count, char** arguments) {
  std::string table, model_name = "gpt-175b", machine_name = "selene", program;
  int64_t devices = 512, global_batch = 1536;
  int seeds = 20, trials = 200;
  size_t slots = 1;
  bool trace = false, only_prior = false, only_blind = false, latency = false;
  CLI::App app("Trials that a search of a recorded table takes");
  app.add_option("table", table)->required();
  app.add_option("--model", model_name);
  app.add_option("--machine", machine_name);
  app.add_option("--program", program);
  app.add_option("--devices", devices);
  app.add_option("--global-batch", global_batch);
  app.add_option("--seeds", seeds);
  app.add_option("--trials", trials);
  app.add_flag("--trace", trace);
  app.add_flag("--prior", only_prior);
  app.add_flag("--blind", only_blind);
  app.add_flag("--latency", latency);
  app.add_option("--slots", slots);
  CLI11_PARSE(app, count, arguments);
  try {
    const spec::ModelSpec model = spec::model_preset(model_name);
    const spec::Machine machine = spec::load_machine(machine_name);
    const search::Replay replay = search::read_replay(table, model, devices, global_batch);
    cost::Recipe recipe = cost::recipe(program.empty() ? machine.stack.program : program);
    recipe.selective_is_attention = recipe.selective_is_attention || replay.selective_is_attention;
    simulate::Evaluator evaluator(model, machine, recipe, spec::Precision::bf16);
    const auto guesses = search::simulator_guesses(evaluator, replay.points, {search::Objective::step_seconds});
    const double limit_bytes = machine.device.memory_gib * 1073741824.0;
    double fastest = 1e300;
    for (const auto& row : replay.rows) {
      if (row.outcome == search::Outcome::ok) fastest = std::min(fastest, row.step_seconds);
    }
    if (latency) {
      print_latency(replay, only_blind ? std::vector<search::Guess>() : guesses, limit_bytes, slots);
      return 0;
    }
    for (int seed = 0; seed < seeds; ++seed) {
      for (const bool blind : {false, true}) {
        if ((blind && only_prior) || (!blind && only_blind)) continue;
        const Score score = replay_search(replay, blind ? std::vector<search::Guess>() : guesses, seed, trials,
                                          limit_bytes, fastest, trace);
        std::printf("%s %d %d %d %d %d %.4f\n", blind ? "blind" : "prior", seed, score.within1, score.within5,
                    score.failures, score.later_failures, score.best);
        std::fflush(stdout);
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_tune_replay: %s\n", error.what());
    return 1;
  }
  return 0;
}
