// The option --set of every command that reads a config.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace ridgeline::cli {

// Each --set takes one word, so that a config file may follow it; all of them count. `over_what`: "the file".
inline void add_set_option(CLI::App& command, std::vector<std::string>& sets, const std::string& over_what) {
  command.add_option("--set", sets, "KEY=VALUE, over what " + over_what + " says; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace ridgeline::cli
