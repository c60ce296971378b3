// ridgeline job: the batch script that trains a config on a cluster.
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/plan_arguments.h"
#include "cli/set_option.h"
#include "core/error.h"
#include "core/log.h"
#include "core/output_file.h"
#include "core/text.h"
#include "project/job_script.h"
#include "project/projection.h"
#include "project/quantity.h"
#include "spec/parameters.h"

namespace ridgeline::cli {
namespace {

constexpr double kUsualHours = 24;  // where a site names no limit

struct Arguments {
  std::string config;
  std::vector<std::string> sets;
  MachineArguments machine;
  std::string walltime, name, account, program, write;
  std::vector<std::string> sbatch;
  int64_t spare_nodes = 0;
};

double job_seconds(const Arguments& arguments, const spec::Machine& machine, int64_t nodes) {
  const std::optional<double> longest = spec::longest_job_hours(machine.site, nodes, machine.name);
  if (arguments.walltime.empty()) return 3600 * longest.value_or(kUsualHours);
  const double asked = project::parse_seconds(arguments.walltime, "--walltime");
  if (longest && asked > 3600 * *longest) {
    throw InputError("--walltime {}: {} runs jobs of {} nodes for {} h at most", arguments.walltime, machine.name,
                     nodes, *longest);
  }
  return asked;
}

std::string own_path() {
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? "ridgeline" : path.string();
}

int write_job(const Arguments& arguments) {
  set_up_log();
  const spec::Machine machine = arguments.machine.load();
  const int64_t devices = arguments.machine.device_count(machine);
  if (devices == 0 || devices % machine.devices_per_node != 0) {
    throw InputError("a job takes whole nodes of {} devices: expected --nodes", machine.devices_per_node);
  }
  spec::TrainConfig config = spec::load_train_spec(arguments.config, arguments.sets);
  spec::TrainSpec& train = config.spec;
  config.sources.located([&] {
    spec::require_trainable(train.model);
    spec::derive_data(train.strategy, train.model, devices);
  });
  project::StepModel steps(train, machine, cost::recipe("ridgeline"));
  if (!steps.fits(devices, train.strategy.global_batch)) {
    throw InputError("{}: this strategy does not fit on {} devices of {}; `ridgeline plan` finds one that does",
                     arguments.config, devices, machine.name);
  }
  const int64_t nodes = devices / machine.devices_per_node;
  if (machine.nodes > 0 && nodes + arguments.spare_nodes > machine.nodes) {
    throw InputError("--spare-nodes {}: {} has {} nodes in all", arguments.spare_nodes, machine.name, machine.nodes);
  }
  const double step = steps.seconds(devices, train.strategy.global_batch).high;
  project::JobOrder order;
  order.program = arguments.program.empty() ? own_path() : arguments.program;
  order.config = arguments.config;
  order.sets = arguments.sets;
  order.machine = arguments.machine.machine;
  order.run = train.training.run;
  order.name = arguments.name.empty() ? std::filesystem::path(arguments.config).stem().string() : arguments.name;
  order.account = arguments.account;
  order.sbatch = arguments.sbatch;
  order.nodes = nodes;
  order.spare_nodes = arguments.spare_nodes;
  order.ranks_per_node = machine.devices_per_node;
  order.seconds = job_seconds(arguments, machine, nodes + arguments.spare_nodes);
  order.lead_seconds = project::lead_seconds(step, project::save_seconds(train.model, machine.operation, nodes));
  const std::string script = project::job_script(order, machine);
  if (train.checkpoint.every == 0) {
    spdlog::warn(
        "checkpoint.every = 0: a failure loses all since the job's start; `ridgeline project` says how often to "
        "save");
  }
  if (arguments.write.empty()) {
    fmt::print("{}", script);
  } else {
    write_whole_file(arguments.write, script);
    fmt::print("{}: submit it with sbatch {}\n", arguments.write, project::shell_quoted(arguments.write));
  }
  return kDone;
}

}  // namespace

void add_job_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("job", "Write the batch script that trains a config on a cluster");
  command->add_option("CONFIG", arguments->config, "config of `ridgeline train`")->required();
  add_set_option(*command, arguments->sets, "the file");
  arguments->machine.add_to(*command);
  command->add_option("--walltime", arguments->walltime, "of a job: 12h; else the site's longest for so many nodes");
  command
      ->add_option("--spare-nodes", arguments->spare_nodes, "allocated beside: a node that dies does not end the job")
      ->check(CLI::Range(int64_t{0}, int64_t{100'000}));
  command->add_option("--account", arguments->account, "that pays");
  command->add_option("--name", arguments->name, "of the job; else the config's");
  command->add_option("--sbatch", arguments->sbatch, "one more option of sbatch; may be repeated")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--ridgeline", arguments->program, "path of the program on the nodes; else this one's");
  command->add_option("--write", arguments->write, "file to write; else the script is printed");
  command->footer(
      "Example:\n"
      "  ridgeline job run.toml --machine frontier --nodes 128 --account ABC123 --write job.sh && sbatch job.sh");
  command->callback([arguments, &exit_code] { exit_code = write_job(*arguments); });
}

}  // namespace ridgeline::cli
