#include "cli/project_arguments.h"

#include <filesystem>

#include "cli/plan_arguments.h"
#include "cli/set_option.h"
#include "core/error.h"
#include "core/log.h"
#include "project/full_runs.h"
#include "project/quantity.h"

namespace ridgeline::cli {
namespace {

bool is_config(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && !path.ends_with(".jsonl");
}

std::optional<spec::Machine> machine_of(const ProjectArguments& arguments) {
  if (arguments.machine.empty()) return std::nullopt;
  MachineArguments machine;
  machine.machine = arguments.machine;
  return machine.load();
}

int64_t asked_devices(const ProjectArguments& arguments, const std::optional<spec::Machine>& machine) {
  if (arguments.nodes == 0 && arguments.devices == 0) return 0;
  if (arguments.nodes > 0 && !machine) {
    throw InputError("--nodes {}: how many devices a node has is not known; add --machine, or give --devices",
                     arguments.nodes);
  }
  if (!machine) return arguments.devices;
  MachineArguments asked;
  asked.nodes = arguments.nodes;
  asked.devices = arguments.devices;
  return asked.device_count(*machine);
}

project::StepModel recorded_steps(const ProjectArguments& arguments, const std::optional<spec::Machine>& machine,
                                  project::Conditions& conditions) {
  if (!arguments.sets.empty()) {
    throw InputError("--set {}: a recorded run is what it is; --set goes with a config", arguments.sets.front());
  }
  std::vector<project::RecordedRun> runs;
  for (const std::string& path : arguments.inputs) runs.push_back(project::read_recorded_run(path));
  project::StepModel steps(runs);
  if (machine) steps.predict_with(*machine, cost::recipe(arguments.program));
  const project::RecordedRun& first = runs.front();
  conditions.start_seconds = first.start_seconds;
  conditions.save_seconds = first.save_seconds;
  conditions.evaluation_seconds = first.evaluation_seconds;
  conditions.pause_seconds = first.pause_seconds;
  return steps;
}

project::StepModel predicted_steps(const ProjectArguments& arguments, const std::optional<spec::Machine>& machine,
                                   int64_t devices) {
  const std::string& path = arguments.inputs.front();
  if (!machine) throw InputError("{}: a config is projected by a prediction: add --machine", path);
  AnyConfig config = load_any_config(path, arguments.sets);
  spec::Strategy& strategy = config.train.spec.strategy;
  const int64_t known = devices > 0 ? devices : config.devices;
  if (known == 0) throw InputError("{}: on how many devices? add --nodes or --devices", path);
  config.train.sources.located([&] { spec::derive_data(strategy, config.train.spec.model, known); });
  project::StepModel steps(config.train.spec, *machine, cost::recipe(arguments.program));
  if (!steps.fits(known, strategy.global_batch)) {
    throw InputError("{}: this strategy does not fit on {} devices of {}; `ridgeline plan` finds one that does", path,
                     known, machine->name);
  }
  return steps;
}

void apply_options(const ProjectArguments& arguments, ProjectQuestion& question) {
  project::Conditions& conditions = question.conditions;
  const auto seconds = [](const std::string& text, const char* what, auto& target, double unit) {
    if (!text.empty()) target = project::parse_seconds(text, what) / unit;
  };
  if (!arguments.ramp.empty()) conditions.ramp = project::parse_ramp(arguments.ramp, "--ramp");
  seconds(arguments.start, "--start", conditions.start_seconds, 1);
  seconds(arguments.restart, "--restart", conditions.operation.restart_minutes, 60);
  seconds(arguments.save, "--save", conditions.save_seconds, 1);
  seconds(arguments.save_every, "--save-every", conditions.interval_seconds, 1);
  seconds(arguments.walltime, "--walltime", conditions.job_hours, 3600);
  seconds(arguments.queue_wait, "--queue-wait", conditions.wait_hours, 3600);
  if (arguments.node_mtbf > 0) conditions.operation.node_mtbf_hours = arguments.node_mtbf;
  if (arguments.price >= 0) conditions.price_node_hour = arguments.price;
  conditions.fails = !arguments.no_failures;
  conditions.spare_nodes = arguments.spare_nodes;
  conditions.plays = arguments.plays;
  conditions.seed = arguments.seed;
  question.tokens_are_optimal = arguments.tokens.empty();
  conditions.tokens = question.tokens_are_optimal ? project::compute_optimal_tokens(question.steps.spec().model)
                                                  : project::parse_count(arguments.tokens, "--tokens");
}

}  // namespace

ProjectQuestion question_of(const ProjectArguments& arguments) {
  const std::optional<spec::Machine> machine = machine_of(arguments);
  const int64_t devices = asked_devices(arguments, machine);
  project::Conditions conditions;
  const bool of_config = arguments.inputs.size() == 1 && is_config(arguments.inputs.front());
  for (const std::string& path : arguments.inputs) {
    if (of_config || !is_config(path)) continue;
    throw InputError("{}: a config beside other inputs: expected either one config or recorded runs", path);
  }
  project::StepModel steps =
      of_config ? predicted_steps(arguments, machine, devices) : recorded_steps(arguments, machine, conditions);
  conditions.devices = devices > 0 ? devices : steps.devices();
  if (machine) {
    conditions.devices_per_node = machine->devices_per_node;
    conditions.power = machine->power;
    if (conditions.power.busy_w <= 0) conditions.power.busy_w = machine->device.power_w;
    conditions.operation = machine->operation;
  }
  if (conditions.devices != steps.devices()) {  // what was measured there holds there
    conditions.start_seconds.reset();
    conditions.save_seconds.reset();
    conditions.evaluation_seconds.reset();
  }
  std::string of = arguments.inputs.front();
  if (arguments.inputs.size() > 1) of += fmt::format(" and {} more", arguments.inputs.size() - 1);
  ProjectQuestion question{std::move(steps), conditions, machine, false, of};
  apply_options(arguments, question);
  return question;
}

void ProjectArguments::add_to(CLI::App& command) {
  command.add_option("RUN", inputs, "folders of finished short runs, or one config to predict")->required();
  command.add_option("--tokens", tokens, "of the whole training: 300B, 1.5T; else 20 a parameter");
  command.add_option("--machine", machine, "a shipped machine or a machine file; a config needs it");
  command.add_option("--nodes", nodes, "nodes of the whole training; else those of the runs")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  command.add_option("--devices", devices, "devices, in place of nodes")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  command.add_option("--deadline", deadline, "say how few nodes finish within it: 60d");
  command.add_flag("--surely", surely, "hold the deadline in nine of ten cases, not on average");
  command.add_option("--budget-node-hours", budget, "say how many tokens it pays for")->check(CLI::PositiveNumber);
  command.add_option("--price-node-hour", price, "money for a node-hour, in any currency")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--ramp", ramp, "START:INCREMENT:SAMPLES: the batch grows to the strategy's");
  command.add_option("--walltime", walltime, "longest job of the site: 12h; else one job lasts");
  command.add_option("--queue-wait", queue_wait, "mean wait before each job: 6h");
  command.add_option("--spare-nodes", spare_nodes, "allocated beside, so that a failure does not end the job")
      ->check(CLI::Range(int64_t{0}, int64_t{100'000}));
  command.add_option("--node-mtbf", node_mtbf, "hours of a node between failures; else the machine's")
      ->check(CLI::PositiveNumber);
  command.add_flag("--no-failures", no_failures, "as if nothing ever failed");
  command.add_option("--start", start, "from the start of processes to the first step: 5min");
  command.add_option("--restart", restart, "from a failure to the start of processes: 10min");
  command.add_option("--save", save, "for which a checkpoint stops training: 30s");
  command.add_option("--save-every", save_every, "work between checkpoints: 1h; else the best");
  command.add_option("--program", program, "whose way of running a step a config is predicted in");
  command.add_option("--plays", plays, "random courses of the training that are played")
      ->check(CLI::Range(int64_t{20}, int64_t{1'000'000}));
  command.add_option("--seed", seed, "of the plays");
  add_set_option(command, sets, "the config");
  command.add_flag("--json", wants_json, "print one JSON document");
}

}  // namespace ridgeline::cli
