// ridgeline generate: checks the run, then hands over to the engine.
#include <memory>

#include "cli/commands.h"
#include "cli/find_engine.h"
#include "cli/generate_arguments.h"
#include "core/log.h"

namespace ridgeline::cli {
namespace {

void run(const GenerateArguments& arguments) {
  set_up_log();
  load(arguments);
  std::vector<std::string> command = {find_engine()};
  for (std::string& word : engine_words(arguments)) command.push_back(std::move(word));
  become(command);
}

}  // namespace

void add_generate_command(CLI::App& program, int&) {
  auto arguments = std::make_shared<GenerateArguments>();
  CLI::App* command = program.add_subcommand("generate", "Write text with a trained model");
  add_generate_arguments(*command, *arguments);
  command->footer(
      "Examples:\n"
      "  ridgeline generate runs/first --prompt \"Once upon a time\"\n"
      "  ridgeline generate runs/first/checkpoints/step-00000100 --temperature 0 --tokens 50 --json");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace ridgeline::cli
