// Arguments of `generate`, shared by the command and the engine, so that both understand the same.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/saved_run.h"

namespace ridgeline::cli {

struct GenerateArguments {
  std::string path;
  std::string prompt;
  std::vector<int64_t> prompt_tokens;  // instead of `prompt`
  int64_t tokens = 200;
  double temperature = 0.8;
  int64_t top_k = 40;
  double top_p = 1.0;
  uint64_t seed = 1;
  int64_t samples = 1;
  bool stop_at_end = false;
  bool wants_json = false;
  std::vector<std::string> sets;  // "key=value"
};

void add_generate_arguments(CLI::App& command, GenerateArguments& arguments);

// Opens the run and checks all that needs no tensors. Throws InputError.
SavedRun load(const GenerateArguments& arguments);

// The words that make the engine do the same.
std::vector<std::string> engine_words(const GenerateArguments& arguments);

}  // namespace ridgeline::cli
