#include "search/tune/guesses.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "cost/flops.h"

namespace ridgeline::search {
namespace {

// In the order of the enumeration.
const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> names = {"step_seconds", "device_tflops", "tokens_per_node_hour",
                                                 "joules_per_token"};
  return names;
}

double nodes_of(const Point& point, const spec::Machine& machine) {
  return std::ceil(static_cast<double>(point.devices) / static_cast<double>(machine.devices_per_node));
}

double step_tokens(const Point& point, const spec::ModelSpec& model) {
  return static_cast<double>(point.strategy.global_batch) * static_cast<double>(model.sequence);
}

}  // namespace

std::string to_string(Objective objective) { return objective_names().at(static_cast<size_t>(objective)); }

Objective parse_objective(const std::string& text) {
  const auto& names = objective_names();
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    throw InputError("objective '{}': expected one of {}{}", text.substr(0, 60), join(names),
                     did_you_mean(text, names));
  }
  return static_cast<Objective>(found - names.begin());
}

bool larger_is_better(Objective objective) {
  return objective == Objective::device_tflops || objective == Objective::tokens_per_node_hour;
}

double value_of(Objective objective, double cost) { return larger_is_better(objective) ? 1 / cost : cost; }

double cost_of(Objective objective, const Point& point, const spec::ModelSpec& model, const spec::Machine& machine,
               double seconds, double watts) {
  const double devices = static_cast<double>(point.devices);
  switch (objective) {
    case Objective::step_seconds:
      return seconds;
    case Objective::device_tflops:
      return seconds * devices * 1e12 / cost::step_model_flops(model, point.strategy);
    case Objective::tokens_per_node_hour:
      return seconds / 3600 * nodes_of(point, machine) / step_tokens(point, model);
    case Objective::joules_per_token:
      return seconds * watts * devices / step_tokens(point, model);
  }
  throw InternalError("objective {}", static_cast<int>(objective));
}

std::vector<Guess> simulator_guesses(simulate::Evaluator& evaluator, const PointSet& points,
                                     const std::vector<Objective>& objectives) {
  std::vector<Guess> guesses(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const simulate::Prediction prediction = evaluator.predict(points.at(i).strategy);
    for (const Objective objective : objectives) {
      guesses[i].costs.push_back(cost_of(objective, points.at(i), evaluator.model(), evaluator.machine(),
                                         prediction.step_seconds, evaluator.machine().device.power_w));
    }
    guesses[i].peak_bytes = prediction.memory.low;
  }
  return guesses;
}

}  // namespace ridgeline::search
