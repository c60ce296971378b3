// ridgeline train: checks the config, then hands over to the engine.
#include <memory>

#include "cli/commands.h"
#include "cli/start_ranks.h"
#include "cli/train_arguments.h"

namespace ridgeline::cli {
namespace {

struct Arguments {
  TrainArguments train;
  int ranks = 0;  // --nproc; 0: what the environment says
};

int run(const Arguments& arguments) {
  return start_ranks(arguments.ranks, [&](int world) { load(arguments.train, world); }, engine_words(arguments.train));
}

}  // namespace

void add_train_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("train", "Train a model, or continue a run that was stopped");
  add_train_arguments(*command, arguments->train);
  add_nproc_option(*command, arguments->ranks);
  command->footer(
      "Examples:\n"
      "  ridgeline train run.toml\n"
      "  ridgeline train run.toml --nproc 4 --set strategy.tensor=2 --set optimizer.lr=3e-4\n"
      "  torchrun --no-python --nproc-per-node 8 ridgeline train run.toml\n"
      "  srun ridgeline train run.toml");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace ridgeline::cli
