// ridgeline: the command. Knows no libtorch and starts at once; see find_engine.h for what computes with tensors.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "core/error.h"
#include "core/text.h"

namespace ridgeline::cli {
namespace {

void refuse_unknown_command(const CLI::App& program, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return;
  throw InputError("unknown command '{}'{} (the commands are {})", argv[1], did_you_mean(argv[1], names), join(names));
}

int run(int argc, char** argv) {
  int exit_code = kDone;
  CLI::App program("Ridgeline trains large language models with hybrid parallelism.", "ridgeline");
  program.set_version_flag("--version", "ridgeline " RIDGELINE_VERSION);
  program.require_subcommand(1);
  program.footer(
      "Example:\n"
      "  ridgeline data tokenize book.txt --output corpus\n"
      "  ridgeline config --example > run.toml\n"
      "  ridgeline train run.toml --nproc 2\n"
      "  ridgeline generate runs/default --prompt \"Once\"\n"
      "Exit codes: 0 done, 1 failed, 2 the input was wrong, 3 interrupted after saving.");
  add_train_command(program, exit_code);
  add_generate_command(program, exit_code);
  add_evaluate_command(program, exit_code);
  add_parity_command(program, exit_code);
  add_plan_command(program, exit_code);
  add_simulate_command(program, exit_code);
  add_tune_command(program, exit_code);
  add_scale_command(program, exit_code);
  add_project_command(program, exit_code);
  add_job_command(program, exit_code);
  add_validate_command(program, exit_code);
  add_calibrate_command(program, exit_code);
  add_data_command(program, exit_code);
  add_checkpoint_command(program, exit_code);
  add_report_command(program, exit_code);
  add_explain_command(program, exit_code);
  add_config_command(program, exit_code);
  add_doctor_command(program, exit_code);
  refuse_unknown_command(program, argc, argv);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return program.exit(asked);
  } catch (const CLI::ParseError& error) {
    throw InputError("{} (`ridgeline --help` and `ridgeline COMMAND --help` tell more)", error.what());
  }
  return exit_code;
}

}  // namespace
}  // namespace ridgeline::cli

int main(int argc, char** argv) {
  return ridgeline::cli::guarded([&] { return ridgeline::cli::run(argc, argv); });
}
