// ridgeline config: the reference of config files, printed from the declarations that read them.
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "spec/config.h"

namespace ridgeline::cli {
namespace {

constexpr const char* kIntroduction =
    "# Config files\n\n"
    "`ridgeline train` reads one TOML file. All keys are optional but `data.path`; a key that is not listed here is an "
    "error. `--set KEY=VALUE` on the command line wins over the file. This page is what `ridgeline config` prints; "
    "`ridgeline config --example` prints a file to start from.\n\n";

spec::TrainSpec example() {
  spec::TrainSpec spec;
  spec.model_preset = "gpt-tiny";
  spec.model = spec::model_preset(spec.model_preset);
  spec.data.path = "corpus";
  spec.training.run = "runs/first";
  spec.training.steps = 200;
  spec.optimizer.warmup_steps = 20;
  spec.checkpoint.every = 100;
  return spec;
}

void print(bool wants_example) {
  if (wants_example) {
    std::fputs("# A run to start from. Lines that are commented out show the defaults.\n\n", stdout);
    std::fputs(spec::to_toml(example(), true).c_str(), stdout);
    return;
  }
  spec::TrainSpec defaults;
  Schema schema;
  spec::bind(schema, defaults);
  std::fputs(kIntroduction, stdout);
  std::fputs(schema.markdown().c_str(), stdout);
}

}  // namespace

void add_config_command(CLI::App& program, int& exit_code) {
  auto wants_example = std::make_shared<bool>(false);
  CLI::App* command = program.add_subcommand("config", "Print all keys of config files, or a file to start from");
  command->add_flag("--example", *wants_example, "print a commented config file");
  command->footer("Example:\n  ridgeline config --example > run.toml");
  command->callback([wants_example, &exit_code] {
    print(*wants_example);
    exit_code = kDone;
  });
}

}  // namespace ridgeline::cli
