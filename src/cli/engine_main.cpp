// ridgeline-engine: the half of the command that is linked with libtorch. One rank; started by `ridgeline`.
#include <CLI/CLI.hpp>

#include "cli/engine_commands.h"
#include "cli/guarded.h"
#include "cli/train_arguments.h"
#include "core/error.h"
#include "core/log.h"
#include "launch/environment.h"
#include "train/train.h"

namespace ridgeline::cli {
namespace {

int run_train(const TrainArguments& arguments) {
  const launch::RankEnvironment environment = launch::detect();
  set_up_log(environment.rank, environment.world);
  const spec::TrainConfig config = load(arguments, environment.world);
  spdlog::info("{}", launch::describe(environment));
  if (!environment.note.empty()) spdlog::warn("{}", environment.note);
  for (const std::string& line : config.overrides) spdlog::info("{}", line);
  return train::train_command(config.spec, environment, arguments.machine);
}

int run(int argc, char** argv) {
  CLI::App program("The part of Ridgeline that computes with tensors; `ridgeline` starts it.", "ridgeline-engine");
  program.set_version_flag("--version", "ridgeline-engine " RIDGELINE_VERSION);
  program.require_subcommand(1);
  TrainArguments train_arguments;
  CLI::App* train = program.add_subcommand("train", "Be one rank of a training run");
  add_train_arguments(*train, train_arguments);
  GenerateArguments generate_arguments;
  CLI::App* generate = program.add_subcommand("generate", "Write text with a trained model");
  add_generate_arguments(*generate, generate_arguments);
  EvaluateArguments evaluate_arguments;
  CLI::App* evaluate = program.add_subcommand("evaluate", "Be one rank of an evaluation");
  add_evaluate_arguments(*evaluate, evaluate_arguments);
  CLI::App* doctor = program.add_subcommand("doctor", "Say what libtorch can use, as JSON");
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return program.exit(asked);
  } catch (const CLI::ParseError& error) {
    throw InputError("ridgeline-engine: {}", error.what());
  }
  if (generate->parsed()) return run_generate(generate_arguments);
  if (evaluate->parsed()) return run_evaluate(evaluate_arguments);
  if (doctor->parsed()) return run_doctor();
  return run_train(train_arguments);
}

}  // namespace
}  // namespace ridgeline::cli

int main(int argc, char** argv) {
  return ridgeline::cli::guarded([&] { return ridgeline::cli::run(argc, argv); });
}
