// ridgeline train: checks the config, then hands over to the engine.
#include <memory>

#include "cli/commands.h"
#include "cli/find_engine.h"
#include "cli/train_arguments.h"
#include "core/error.h"
#include "core/log.h"
#include "launch/environment.h"
#include "launch/local.h"

namespace ridgeline::cli {
namespace {

struct Arguments {
  TrainArguments train;
  int ranks = 0;  // --nproc; 0: what the environment says
};

int run(const Arguments& arguments) {
  const launch::RankEnvironment environment = launch::detect();
  if (arguments.ranks > 0 && environment.world > 1) {
    throw InputError("--nproc {}: {} has started {} ranks already; use one of the two", arguments.ranks,
                     environment.launcher, environment.world);
  }
  set_up_log(environment.rank, environment.world);
  load(arguments.train, arguments.ranks > 0 ? arguments.ranks : environment.world);

  std::vector<std::string> command = {find_engine()};
  for (std::string& word : engine_words(arguments.train)) command.push_back(std::move(word));
  if (arguments.ranks > 1) return launch::run_local_ranks({.command = command, .ranks = arguments.ranks});
  become(command);
}

}  // namespace

void add_train_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("train", "Train a model, or continue a run that was stopped");
  add_train_arguments(*command, arguments->train);
  command->add_option("--nproc", arguments->ranks, "start N ranks on this machine")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command->footer(
      "Examples:\n"
      "  ridgeline train run.toml\n"
      "  ridgeline train run.toml --nproc 4 --set strategy.tensor=2 --set optimizer.lr=3e-4\n"
      "  torchrun --no-python --nproc-per-node 8 ridgeline train run.toml\n"
      "  srun ridgeline train run.toml");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace ridgeline::cli
