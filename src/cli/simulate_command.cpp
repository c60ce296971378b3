// ridgeline simulate: one strategy in depth.
#include <memory>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/plan_arguments.h"
#include "cli/prediction_output.h"
#include "cli/print_json.h"
#include "cli/set_option.h"
#include "core/error.h"
#include "core/log.h"
#include "core/output_file.h"
#include "core/text.h"
#include "cost/step_schedule.h"
#include "schedule/file.h"

namespace ridgeline::cli {
namespace {

struct Arguments {
  std::string config;
  std::vector<std::string> sets;
  MachineArguments machine;
  std::string trace;
  std::string schedule;
  bool wants_json = false;
};

// `devices` as asked for on the command line, else those that the file is made for, else one replica's.
spec::Strategy strategy_of(const Arguments& arguments, AnyConfig& config, int64_t devices) {
  for (const std::string& line : config.missing) {
    if (!line.starts_with("strategy.")) continue;
    const std::string key = line.substr(0, line.find(':'));
    throw InputError("{}: a strategy is simulated as it is written, and this one lacks {}; add --set {}=VALUE",
                     arguments.config, line, key);
  }
  spec::Strategy& strategy = config.train.spec.strategy;
  const int64_t known = devices > 0 ? devices : config.devices;
  const int64_t ranks = known > 0 ? known : strategy.tensor * strategy.pipeline;
  config.train.sources.located([&] { spec::derive_data(strategy, config.train.spec.model, ranks); });
  return strategy;
}

// A trace of more would be gigabytes, which no viewer opens.
constexpr int64_t kMostSpans = 1'000'000;

void require_traceable(const spec::Strategy& strategy) {
  const double spans = 2.0 * static_cast<double>(strategy.pipeline) * static_cast<double>(strategy.micro_batches()) *
                       static_cast<double>(strategy.virtual_pipeline);
  if (spans <= static_cast<double>(kMostSpans)) return;
  throw InputError(
      "--trace: {} stages, {} chunks each and strategy.global_batch = {} (that is {} micro-batches) make {:.0f} "
      "spans, expected at most {}; lower strategy.global_batch: a few times as many micro-batches as stages show all",
      strategy.pipeline, strategy.virtual_pipeline, strategy.global_batch, strategy.micro_batches(), spans, kMostSpans);
}

void print_report(const simulate::Prediction& prediction, const std::vector<simulate::StageReport>& stages,
                  const simulate::Evaluator& evaluator) {
  fmt::print("{} on {}\n{}\n\n", describe(prediction.strategy), evaluator.machine().name,
             evaluator.machine().stack.name);
  fmt::print("step {}, {} tokens/s, {:.1f} TFLOP/s a device ({:.1f} with recomputation), MFU {:.1f} %, HFU {:.1f} %\n",
             format_duration(prediction.step_seconds), format_count(prediction.tokens_per_second),
             prediction.tflops_per_device, prediction.hardware_tflops_per_device, 100 * prediction.mfu,
             100 * prediction.hfu);
  fmt::print("{}", time_table(prediction));
  fmt::print("\nmemory of stage {}, the fullest: {}\n{}", prediction.fullest_stage, to_string(prediction.fit),
             memory_table(prediction.memory, evaluator.machine().device.memory_gib));
  fmt::print("\n{:>5} {:>6} {:>10} {:>10} {:>10} {:>11} {:>11} {:>10}\n", "stage", "layers", "parameters", "forward",
             "backward", "static", "activations", "total");
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const simulate::StageReport& report = stages[stage];
    const double statics = report.memory.weights + report.memory.gradients + report.memory.optimizer;
    fmt::print("{:5} {:6} {:>10} {:>10} {:>10} {:>11} {:>11} {:>10}\n", stage, report.layers,
               format_count(report.parameters), format_duration(report.times.forward()),
               format_duration(report.times.backward()), format_bytes(statics), format_bytes(report.memory.activations),
               format_bytes(report.memory.total()));
  }
}

void print_parts(const std::vector<simulate::PartReport>& parts) {
  fmt::print("\nkernels of a micro-batch, of one layer, and what it keeps\n");
  fmt::print("{:>12} {:>10} {:>10} {:>12} {:>10}\n", "part", "forward", "backward", "recomputed", "kept");
  for (const simulate::PartReport& part : parts) {
    fmt::print("{:>12} {:>10} {:>10} {:>12} {:>10}\n", part.name, format_duration(part.forward),
               format_duration(part.backward), format_duration(part.recompute), format_bytes(part.saved_bytes));
  }
}

int simulate_config(const Arguments& arguments) {
  set_up_log();
  const spec::Machine machine = arguments.machine.load();
  AnyConfig config = load_any_config(arguments.config, arguments.sets);
  const spec::Strategy strategy = strategy_of(arguments, config, arguments.machine.device_count(machine));
  if (!arguments.trace.empty()) require_traceable(strategy);
  const spec::TrainSpec& spec = config.train.spec;
  simulate::Evaluator evaluator(spec.model, machine, arguments.machine.recipe(), spec.precision.compute);
  const simulate::Prediction prediction = evaluator.predict(strategy);
  const std::vector<simulate::StageReport> stages = evaluator.stages(strategy);
  if (!arguments.schedule.empty()) {
    write_whole_file(arguments.schedule, schedule::to_text(cost::step_schedule(spec.model, strategy)));
  }
  if (!arguments.trace.empty()) write_whole_file(arguments.trace, simulate::chrome_trace(evaluator.play(strategy)));
  if (!arguments.wants_json) {
    print_report(prediction, stages, evaluator);
    print_parts(evaluator.parts(strategy));
    return kDone;
  }
  print_json(simulation_json(evaluator, strategy));
  return kDone;
}

}  // namespace

void add_simulate_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("simulate", "Predict time and memory of one strategy, in depth");
  command->add_option("config", arguments->config, "config file of `ridgeline train`, or of another program")
      ->required();
  add_set_option(*command, arguments->sets, "the file");
  arguments->machine.add_to(*command);
  command->add_option("--write-schedule", arguments->schedule,
                      "write the order of each stage's work, as a file for strategy.schedule_file");
  command->add_option("--trace", arguments->trace, "write a Chrome trace of the stages, which Perfetto opens");
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->footer("Example:\n  ridgeline simulate run.toml --machine frontier --nodes 16 --trace step.json");
  command->callback([arguments, &exit_code] { exit_code = simulate_config(*arguments); });
}

}  // namespace ridgeline::cli
