// Arguments of `train`, shared by the command and the engine, so that both understand the same.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "spec/config.h"

namespace ridgeline::cli {

struct TrainArguments {
  std::string config;
  std::vector<std::string> sets;  // "key=value"
  std::string machine;            // that predicts the step; empty: none
};

void add_train_arguments(CLI::App& command, TrainArguments& arguments);

// Reads the config, lays it out over `ranks` and checks all that needs no tensors. Throws InputError.
spec::TrainConfig load(const TrainArguments& arguments, int ranks);

// Throws InputError, naming the key, where a token file that `data` names cannot be read.
void check_data(const spec::DataSpec& data);

// The words that make the engine do the same.
std::vector<std::string> engine_words(const TrainArguments& arguments);

}  // namespace ridgeline::cli
