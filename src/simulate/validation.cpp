#include "simulate/validation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "core/error.h"
#include "simulate/evaluator.h"

namespace ridgeline::simulate {
namespace {

using Group = std::vector<const ValidatedRun*>;
constexpr size_t kLeastGroup = 4;

auto group_key(const MeasuredRun& run) {
  const spec::ModelSpec& model = run.model;
  return std::make_tuple(run.source, run.machine, run.devices, run.strategy.global_batch, model.layers, model.hidden,
                         model.heads, model.sequence, model.vocabulary);
}

double sign(double value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

double kendall_tau(const Group& group) {
  double agree = 0, predicted_pairs = 0, measured_pairs = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    for (size_t j = i + 1; j < group.size(); ++j) {
      const double measured = sign(group[i]->run.step_seconds - group[j]->run.step_seconds);
      const double predicted = sign(group[i]->prediction->step_seconds - group[j]->prediction->step_seconds);
      agree += measured * predicted;
      measured_pairs += measured * measured;
      predicted_pairs += predicted * predicted;
    }
  }
  return measured_pairs > 0 && predicted_pairs > 0 ? agree / std::sqrt(measured_pairs * predicted_pairs) : 0;
}

double regret(const Group& group) {
  const auto predicted = [](const ValidatedRun* a, const ValidatedRun* b) {
    return a->prediction->step_seconds < b->prediction->step_seconds;
  };
  const auto measured = [](const ValidatedRun* a, const ValidatedRun* b) {
    return a->run.step_seconds < b->run.step_seconds;
  };
  const ValidatedRun* chosen = *std::min_element(group.begin(), group.end(), predicted);
  const ValidatedRun* best = *std::min_element(group.begin(), group.end(), measured);
  return chosen->run.step_seconds / best->run.step_seconds - 1;
}

void order(Accuracy& accuracy, const Group& runs) {
  std::map<decltype(group_key(runs.front()->run)), Group> groups;
  for (const ValidatedRun* run : runs) groups[group_key(run->run)].push_back(run);
  double tau = 0, regrets = 0;
  int64_t count = 0;
  for (const auto& [key, group] : groups) {
    if (group.size() < kLeastGroup) continue;
    tau += kendall_tau(group);
    regrets += regret(group);
    ++count;
  }
  if (count == 0) return;
  accuracy.kendall_tau = tau / static_cast<double>(count);
  accuracy.regret = regrets / static_cast<double>(count);
}

Accuracy accuracy_with_order(const std::string& source, int64_t rows, const Group& predicted) {
  std::vector<double> errors;
  for (const ValidatedRun* run : predicted) errors.push_back(run->error());
  Accuracy accuracy = accuracy_of(source, rows, errors);
  if (!predicted.empty()) order(accuracy, predicted);
  std::vector<double> memory;
  for (const ValidatedRun* run : predicted) {
    if (run->run.peak_bytes > 0) memory.push_back(run->memory_error());
  }
  if (memory.empty()) return accuracy;
  const Accuracy of_memory = accuracy_of(source, rows, memory);
  accuracy.memory_mean_error = of_memory.mean_error;
  accuracy.memory_mean_absolute_error = of_memory.mean_absolute_error;
  return accuracy;
}

// Evaluators by what they are made of, as rows of one model stand together.
class Evaluators {
 public:
  Evaluator& of(const MeasuredRun& run, const spec::Machine& machine) {
    const spec::ModelSpec& model = run.model;
    const std::array<int64_t, 11> shape = {model.layers,
                                           model.hidden,
                                           model.heads,
                                           model.sequence,
                                           model.vocabulary,
                                           model.ffn(),
                                           model.key_heads(),
                                           model.gated_mlp,
                                           model.embedding_norm,
                                           run.knows_attention ? 1 + run.fused_attention : 0,
                                           run.fp8};
    const Key key{machine.name, shape, model.dropout, run.compute};
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    return known_.emplace(key, Evaluator(model, machine, recipe_of(run, machine), run.compute)).first->second;
  }

 private:
  using Key = std::tuple<std::string, std::array<int64_t, 11>, double, spec::Precision>;
  std::map<Key, Evaluator> known_;
};

ValidatedRun validated(Evaluators& evaluators, const MeasuredRun& run, const spec::Machine& machine) {
  ValidatedRun result{run, std::nullopt};
  result.run.why_not = why_not(run, machine);
  if (!result.run.why_not.empty()) return result;
  result.run.machine = machine.name;
  Evaluator& evaluator = evaluators.of(run, machine);
  result.prediction = evaluator.predict(cost::with_stages(run.strategy, run.model, evaluator.recipe()));
  const double reserve = run.peak_has_reserve ? 0 : evaluator.memory().reserve(run.strategy);
  result.predicted_peak = result.prediction->memory.total() - reserve;
  return result;
}

}  // namespace

Accuracy accuracy_of(const std::string& source, int64_t rows, const std::vector<double>& errors) {
  Accuracy accuracy;
  accuracy.source = source;
  accuracy.rows = rows;
  accuracy.predicted = static_cast<int64_t>(errors.size());
  if (errors.empty()) return accuracy;
  std::vector<double> absolute;
  for (const double error : errors) {
    accuracy.mean_error += error / static_cast<double>(errors.size());
    absolute.push_back(std::abs(error));
    accuracy.mean_absolute_error += absolute.back() / static_cast<double>(errors.size());
  }
  std::sort(absolute.begin(), absolute.end());
  const size_t rank = static_cast<size_t>(std::ceil(0.95 * static_cast<double>(absolute.size())));
  accuracy.p95_absolute_error = absolute[rank - 1];
  return accuracy;
}

std::vector<ValidatedRun> validate_runs(const std::vector<MeasuredRun>& runs, const std::string& machine) {
  std::map<std::string, spec::Machine> machines;
  Evaluators evaluators;
  std::vector<ValidatedRun> result;
  for (const MeasuredRun& run : runs) {
    const std::string& name = machine.empty() ? run.machine : machine;
    if (name.empty() || !run.why_not.empty()) {
      result.push_back({run, std::nullopt});
      std::string& why_not = result.back().run.why_not;
      if (why_not.empty()) why_not = "no machine file for this system (use --machine)";
      continue;
    }
    auto found = machines.find(name);
    if (found == machines.end()) found = machines.emplace(name, spec::load_machine(name)).first;
    result.push_back(validated(evaluators, run, found->second));
  }
  return result;
}

std::vector<ValidatedRun> validate_runs(const std::vector<MeasuredRun>& runs, const spec::Machine& machine) {
  Evaluators evaluators;
  std::vector<ValidatedRun> result;
  for (const MeasuredRun& run : runs) result.push_back(validated(evaluators, run, machine));
  return result;
}

std::vector<Accuracy> accuracies(const std::vector<ValidatedRun>& runs) {
  std::vector<std::string> sources;
  std::map<std::string, int64_t> rows;
  std::map<std::string, Group> groups;
  Group all;
  for (const ValidatedRun& run : runs) {
    if (rows[run.run.source]++ == 0) sources.push_back(run.run.source);
    if (!run.prediction) continue;
    groups[run.run.source].push_back(&run);
    all.push_back(&run);
  }
  std::vector<Accuracy> result;
  for (const std::string& source : sources) {
    result.push_back(accuracy_with_order(source, rows[source], groups[source]));
  }
  result.push_back(accuracy_with_order("all", static_cast<int64_t>(runs.size()), all));
  return result;
}

}  // namespace ridgeline::simulate
