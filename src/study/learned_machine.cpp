#include "study/learned_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "study/tuner.h"

namespace ridgeline::study {
namespace {

constexpr size_t kFewestTrials = 3;
constexpr double kPrice = 0.02;  // of a factor e away from the file, in units of one trial's |log error|
constexpr int kRounds = 40;

struct Figure {
  const char* name;
  double spec::StackFacts::*value;
  double lowest, highest;
};

constexpr Figure kFigures[] = {{"product_efficiency", &spec::StackFacts::product_efficiency, 0.001, 1},
                               {"memory_efficiency", &spec::StackFacts::memory_efficiency, 0.001, 1},
                               {"node_efficiency", &spec::StackFacts::node_efficiency, 0.001, 1},
                               {"layer_host_us", &spec::StackFacts::layer_host_us, 0.1, 1e5},
                               {"step_ms", &spec::StackFacts::step_ms, 0.001, 1e5}};

struct Sample {
  const spec::Strategy* strategy;
  double seconds;
};

class Fit {
 public:
  Fit(const Problem& problem, const std::vector<TrialRecord>& good) : problem_(problem), machine_(problem.machine()) {
    for (const TrialRecord& trial : good) {
      const size_t point = problem.point_of(trial);
      samples_.push_back({&problem.points().at(point).strategy, problem.seconds_at(point, trial.costs.front())});
    }
  }

  // Steps of a factor in each figure, halved when none helps.
  void run() {
    double best = loss(machine_), step = std::log(2.0);
    for (int round = 0; round < kRounds && step > 0.01; ++round) {
      bool is_better = false;
      for (const Figure& figure : kFigures) {
        for (const double factor : {std::exp(step), std::exp(-step)}) {
          spec::Machine moved = machine_;
          double& value = moved.stack.*figure.value;
          value = std::clamp(value * factor, figure.lowest, figure.highest);
          const double moved_loss = loss(moved);
          if (moved_loss >= best) continue;
          best = moved_loss;
          machine_ = moved;
          is_better = true;
        }
      }
      if (!is_better) step /= 2;
    }
  }

  double mean_error(const spec::Machine& machine) const {
    double sum = 0;
    for (const double ratio : ratios(machine)) sum += std::abs(ratio - 1);
    return sum / static_cast<double>(samples_.size());
  }

  const spec::Machine& machine() const { return machine_; }

 private:
  std::vector<double> ratios(const spec::Machine& machine) const {
    simulate::Evaluator evaluator(problem_.train().model, machine, problem_.recipe(), problem_.train().precision.compute);
    std::vector<double> all;
    for (const Sample& sample : samples_) {
      all.push_back(evaluator.predict(*sample.strategy).step_seconds / sample.seconds);
    }
    return all;
  }

  double loss(const spec::Machine& machine) const {
    double sum = 0;
    for (const double ratio : ratios(machine)) sum += std::abs(std::log(ratio));
    for (const Figure& figure : kFigures) {
      const double before = problem_.machine().stack.*figure.value, now = machine.stack.*figure.value;
      if (before > 0) sum += kPrice * std::abs(std::log(now / before));
    }
    return sum;
  }

  const Problem& problem_;
  spec::Machine machine_;
  std::vector<Sample> samples_;
};

}  // namespace

LearnedMachine learn_machine(const Problem& problem, const std::vector<TrialRecord>& trials) {
  LearnedMachine learned;
  const std::vector<TrialRecord> good = ranked(trials);
  if (problem.predictions().empty() || good.size() < kFewestTrials) return learned;
  Fit fit(problem, good);
  learned.error_before = fit.mean_error(problem.machine());
  fit.run();
  learned.machine = fit.machine();
  learned.error_after = fit.mean_error(learned.machine);
  learned.trials = good.size();
  return learned;
}

std::string to_toml(const LearnedMachine& learned, const Problem& problem) {
  const std::string base = problem.file().machine;
  std::string text = fmt::format(
      "# Learned from {} trials of {}: the mean error of predictions falls from {:.1f} % to {:.1f} % on them.\n[machine]\n"
      "name = \"{}-learned\"\nbase = \"{}\"\n\n[stack]\n",
      learned.trials, problem.file().path, 100 * learned.error_before, 100 * learned.error_after,
      problem.machine().name, base);
  for (const Figure& figure : kFigures) {
    const double before = problem.machine().stack.*figure.value, now = learned.machine.stack.*figure.value;
    if (now != before) text += fmt::format("{} = {:.6g}  # was {:.6g}\n", figure.name, now, before);
  }
  return text;
}

}  // namespace ridgeline::study
