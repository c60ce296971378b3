// Arguments of `evaluate`, shared by the command and the engine, so that both understand the same.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/saved_run.h"

namespace ridgeline::cli {

struct EvaluateArguments {
  std::string path;
  std::optional<int64_t> samples;  // 0: all; none: what the run's evaluations took
  bool wants_json = false;
  std::vector<std::string> sets;  // "key=value"
};

void add_evaluate_arguments(CLI::App& command, EvaluateArguments& arguments);

// Opens the run, lays it out over `ranks` and checks all that needs no tensors. Throws InputError.
SavedRun load(const EvaluateArguments& arguments, int ranks);

// The words that make the engine do the same.
std::vector<std::string> engine_words(const EvaluateArguments& arguments);

}  // namespace ridgeline::cli
