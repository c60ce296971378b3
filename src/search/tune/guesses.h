// What the simulator says of each point, as a searcher's guesses.
#pragma once

#include <vector>

#include "search/tune/points.h"
#include "search/tune/searcher.h"
#include "simulate/evaluator.h"

namespace ridgeline::search {

// What a study makes small or large. A cost is what the searcher minimises: `value` turns it back into what people
// read.
enum class Objective { step_seconds, device_tflops, tokens_per_node_hour, joules_per_token };
std::string to_string(Objective objective);
Objective parse_objective(const std::string& text);  // throws InputError that lists the names

// Cost of a step of `seconds` at `point`; model FLOPs without recomputation, as everywhere. `watts`: mean of a device,
// measured or its board limit; used by joules_per_token alone.
double cost_of(Objective objective, const Point& point, const spec::ModelSpec& model, const spec::Machine& machine,
               double seconds, double watts);
double value_of(Objective objective, double cost);  // seconds, TFLOP/s, tokens, joules
bool larger_is_better(Objective objective);

// One a point; the evaluator's recipe, precision and machine decide.
std::vector<Guess> simulator_guesses(simulate::Evaluator& evaluator, const PointSet& points,
                                     const std::vector<Objective>& objectives);

}  // namespace ridgeline::search
