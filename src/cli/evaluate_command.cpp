// ridgeline evaluate: checks the run, then hands over to the engine.
#include <memory>

#include "cli/commands.h"
#include "cli/evaluate_arguments.h"
#include "cli/find_engine.h"
#include "core/error.h"
#include "core/log.h"
#include "launch/environment.h"
#include "launch/local.h"

namespace ridgeline::cli {
namespace {

struct Arguments {
  EvaluateArguments evaluate;
  int ranks = 0;  // --nproc; 0: what the environment says
};

int run(const Arguments& arguments) {
  const launch::RankEnvironment environment = launch::detect();
  if (arguments.ranks > 0 && environment.world > 1) {
    throw InputError("--nproc {}: {} has started {} ranks already; use one of the two", arguments.ranks,
                     environment.launcher, environment.world);
  }
  set_up_log(environment.rank, environment.world);
  load(arguments.evaluate, arguments.ranks > 0 ? arguments.ranks : environment.world);
  std::vector<std::string> command = {find_engine()};
  for (std::string& word : engine_words(arguments.evaluate)) command.push_back(std::move(word));
  if (arguments.ranks > 1) return launch::run_local_ranks({.command = command, .ranks = arguments.ranks});
  become(command);
}

}  // namespace

void add_evaluate_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("evaluate", "Loss of a trained model on held-out text");
  add_evaluate_arguments(*command, arguments->evaluate);
  command->add_option("--nproc", arguments->ranks, "start N ranks on this machine")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command->footer(
      "Examples:\n"
      "  ridgeline evaluate runs/first\n"
      "  ridgeline evaluate runs/first --samples 0 --nproc 4 --set data.validation_path=other");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace ridgeline::cli
