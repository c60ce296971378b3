// How a command of the engine is started: --nproc ranks of this machine, or as the one rank that the environment says.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace ridgeline::cli {

// Adds --nproc; `ranks` stays 0 where it is not given.
void add_nproc_option(CLI::App& command, int& ranks);

// Sets up the log, lets `check` refuse what cannot work on so many ranks, and hands over to the engine with `words`.
// Returns an exit code where it started ranks; without --nproc this process becomes the engine.
int start_ranks(int ranks, const std::function<void(int world)>& check, const std::vector<std::string>& words);

}  // namespace ridgeline::cli
