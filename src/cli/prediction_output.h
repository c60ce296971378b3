// How commands show predictions: the JSON keys that the design names, and tables for a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "simulate/evaluator.h"

namespace ridgeline::cli {

nlohmann::json to_json(const spec::Strategy& strategy);
nlohmann::json to_json(const simulate::Prediction& prediction);
// The document of `simulate --json`: the prediction, its machine, every stage and the parts of a layer.
nlohmann::json simulation_json(simulate::Evaluator& evaluator, const spec::Strategy& strategy);

// "tensor 8 x pipeline 16 x data 8, micro-batch 1 ..."
std::string describe(const spec::Strategy& strategy);

// A header and a line for each prediction.
std::string prediction_header();
std::string prediction_line(const simulate::Prediction& prediction);

// Where the step's time and the fullest device's memory go, a few lines each.
std::string time_table(const simulate::Prediction& prediction);
std::string memory_table(const simulate::StageMemory& memory, double device_gib);

}  // namespace ridgeline::cli
