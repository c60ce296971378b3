// ridgeline evaluate: checks the run, then hands over to the engine.
#include <memory>

#include "cli/commands.h"
#include "cli/evaluate_arguments.h"
#include "cli/start_ranks.h"

namespace ridgeline::cli {
namespace {

struct Arguments {
  EvaluateArguments evaluate;
  int ranks = 0;  // --nproc; 0: what the environment says
};

int run(const Arguments& arguments) {
  return start_ranks(arguments.ranks, [&](int world) { load(arguments.evaluate, world); }, engine_words(arguments.evaluate));
}

}  // namespace

void add_evaluate_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("evaluate", "Loss of a trained model on held-out text");
  add_evaluate_arguments(*command, arguments->evaluate);
  add_nproc_option(*command, arguments->ranks);
  command->footer(
      "Examples:\n"
      "  ridgeline evaluate runs/first\n"
      "  ridgeline evaluate runs/first --samples 0 --nproc 4 --set data.validation_path=other");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace ridgeline::cli
