// ridgeline plan: the best strategies for a model on a machine.
#include <chrono>
#include <memory>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/plan_arguments.h"
#include "cli/prediction_output.h"
#include "cli/print_json.h"
#include "core/error.h"
#include "core/output_file.h"
#include "core/text.h"
#include "search/best.h"
#include "spec/config.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;

struct Arguments {
  std::string model;
  MachineArguments machine;
  int64_t global_batch = 0;
  int64_t sequence = 0;
  size_t top = 10;
  std::string write;
  bool wants_json = false;
};

struct Question {
  spec::TrainSpec train;  // what a written config starts from
  spec::ModelSpec model;
  spec::Machine machine;
  simulate::Evaluator evaluator;
};

Question question_of(const Arguments& arguments) {
  const spec::TrainSpec train = load_model(arguments.model);
  spec::ModelSpec model = train.model;
  if (arguments.sequence > 0) model.sequence = arguments.sequence;
  spec::validate(model);
  const spec::Machine machine = spec::load_machine(arguments.machine.machine);
  return {train, model, machine,
          simulate::Evaluator(model, machine, arguments.machine.recipe(), spec::Precision::bf16)};
}

search::Ranking rank(const Question& question, const Arguments& arguments, int64_t devices) {
  search::Space space;
  space.devices = devices;
  space.global_batch = arguments.global_batch;
  search::Ranking ranking = search::rank(question.evaluator, space, arguments.top);
  if (ranking.considered == 0) {
    throw InputError(
        "--global-batch {}: no strategy of {} devices divides it; data * micro-batch must, where data = devices / "
        "(tensor "
        "* pipeline); use a multiple of {}, or other devices",
        arguments.global_batch, devices, devices);
  }
  return ranking;
}

// More nodes, the least of a few multiples with which something fits.
json changes_that_fit(const Question& question, const Arguments& arguments, int64_t devices, std::string& text) {
  json changes = json::array();
  for (const int64_t factor : {2, 3, 4, 6, 8, 12, 16, 24, 32, 64}) {
    search::Space space;
    space.devices = devices * factor;
    space.global_batch = arguments.global_batch;
    const search::Ranking ranking = search::rank(question.evaluator, space, 1);
    if (ranking.best.empty()) continue;
    const simulate::Prediction& best = ranking.best.front();
    changes.push_back({{"change", fmt::format("devices {} -> {}", devices, space.devices)},
                       {"devices", space.devices},
                       {"step_seconds", best.step_seconds},
                       {"strategy", to_json(best.strategy)}});
    text += fmt::format("  {} devices in place of {}: {}, {} a step\n", space.devices, devices, describe(best.strategy),
                        format_duration(best.step_seconds));
    break;
  }
  for (int64_t sequence = question.model.sequence / 2; sequence >= 256; sequence /= 2) {
    spec::ModelSpec shorter = question.model;
    shorter.sequence = sequence;
    search::Space space;
    space.devices = devices;
    space.global_batch = arguments.global_batch;
    const search::Ranking ranking = search::rank(
        simulate::Evaluator(shorter, question.machine, question.evaluator.recipe(), question.evaluator.compute()),
        space, 1);
    if (ranking.best.empty()) continue;
    const simulate::Prediction& best = ranking.best.front();
    changes.push_back({{"change", fmt::format("sequence {} -> {}", question.model.sequence, sequence)},
                       {"sequence", sequence},
                       {"step_seconds", best.step_seconds},
                       {"strategy", to_json(best.strategy)}});
    text += fmt::format("  a sequence of {}: {}, {} a step\n", sequence, describe(best.strategy),
                        format_duration(best.step_seconds));
    break;
  }
  return changes;
}

void write_config(const Arguments& arguments, const Question& question, const search::Ranking& ranking) {
  spec::require_trainable(question.model);
  const simulate::Prediction& best = ranking.best.front();
  spec::TrainSpec train = question.train;
  train.model = question.model;
  train.strategy = best.strategy;
  train.precision.compute = spec::Precision::bf16;
  if (train.data.path.empty()) train.data.path = "corpus";
  const std::string head =
      fmt::format("# {} on {}: {}\n# Predicted: {} a step. Set data.path and training.* before you train.\n\n",
                  arguments.model, question.machine.name, describe(best.strategy), format_duration(best.step_seconds));
  write_whole_file(arguments.write, head + spec::to_toml(train));
}

json entry(const simulate::Prediction& prediction, const Question& question) {
  json document = to_json(prediction);
  document["trainable"] = search::is_trainable(question.model);
  return document;
}

int plan_devices(const Arguments& arguments, Question& question, int64_t devices) {
  const auto start = std::chrono::steady_clock::now();
  const search::Ranking ranking = rank(question, arguments, devices);
  std::string changes_text;
  json changes;
  if (ranking.best.empty()) changes = changes_that_fit(question, arguments, devices, changes_text);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!arguments.write.empty() && !ranking.best.empty()) write_config(arguments, question, ranking);

  if (arguments.wants_json) {
    json document = {{"model", arguments.model},         {"machine", question.machine.name}, {"devices", devices},
                     {"considered", ranking.considered}, {"fitting", ranking.fitting},       {"seconds", seconds},
                     {"strategies", json::array()}};
    for (const auto& prediction : ranking.best) document["strategies"].push_back(entry(prediction, question));
    if (ranking.best.empty()) {
      document["nearest"] = json::array();
      for (const search::Miss& miss : ranking.nearest) {
        json near = entry(miss.prediction, question);
        near["missing_bytes"] = miss.missing_bytes;
        near["changes"] = changes;
        document["nearest"].push_back(near);
      }
    }
    print_json(document);
    return kDone;
  }

  fmt::print("{} on {} devices of {}, global batch {}: {} strategies considered, {} fit, {}\n", arguments.model,
             devices, question.machine.name, arguments.global_batch, ranking.considered, ranking.fitting,
             format_duration(seconds));
  if (ranking.best.empty()) {
    fmt::print("\nNothing fits. Nearest:\n");
    for (const search::Miss& miss : ranking.nearest) {
      fmt::print("  misses by {}: {}\n", format_bytes(miss.missing_bytes), describe(miss.prediction.strategy));
    }
    fmt::print("What would fit:\n{}", changes_text.empty() ? "  nothing that was tried\n" : changes_text);
    return kDone;
  }
  fmt::print("\n{}", prediction_header());
  for (const auto& prediction : ranking.best) {
    std::string line = prediction_line(prediction);
    if (!search::is_trainable(question.model)) line.insert(line.size() - 1, " (not trainable yet)");
    fmt::print("{}", line);
  }
  const simulate::Prediction& best = ranking.best.front();
  fmt::print("\nBest: {}\n{}{}", describe(best.strategy), time_table(best),
             memory_table(best.memory, question.machine.device.memory_gib));
  return kDone;
}

// Without --nodes: how devices trade against time.
int plan_curve(const Arguments& arguments, Question& question) {
  json points = json::array();
  if (!arguments.wants_json) {
    fmt::print("{:>7} {:>8} {:>10} {:>12} {:>11} {:>6}  {}\n", "nodes", "devices", "step", "tokens/s", "node-h / Gtok",
               "MFU", "strategy");
  }
  const int64_t most = question.machine.nodes > 0 ? question.machine.nodes : 4096;
  for (int64_t nodes = 1; nodes <= most; nodes *= 2) {
    search::Space space;
    space.devices = nodes * question.machine.devices_per_node;
    space.global_batch = arguments.global_batch;
    const search::Ranking ranking = search::rank(question.evaluator, space, 1);
    if (ranking.best.empty()) continue;
    const simulate::Prediction& best = ranking.best.front();
    const double node_hours = static_cast<double>(nodes) * 1e9 / best.tokens_per_second / 3600;
    json point = entry(best, question);
    point["nodes"] = nodes;
    point["devices"] = space.devices;
    point["node_hours_per_gigatoken"] = node_hours;
    points.push_back(point);
    if (arguments.wants_json) continue;
    fmt::print("{:7} {:8} {:>10} {:>12} {:13.1f} {:5.1f}%  {}\n", nodes, space.devices,
               format_duration(best.step_seconds), format_count(best.tokens_per_second), node_hours, 100 * best.mfu,
               describe(best.strategy));
  }
  if (arguments.wants_json) {
    print_json({{"model", arguments.model}, {"machine", question.machine.name}, {"curve", points}});
  } else if (points.empty()) {
    fmt::print("Nothing fits on powers of two up to {} nodes.\n", most);
  }
  return kDone;
}

int plan(const Arguments& arguments) {
  Question question = question_of(arguments);
  const int64_t devices = arguments.machine.device_count(question.machine);
  return devices > 0 ? plan_devices(arguments, question, devices) : plan_curve(arguments, question);
}

}  // namespace

void add_plan_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("plan", "Find the best strategies for a model on a machine");
  command
      ->add_option("--model", arguments->model,
                   "a named model, such as gpt-175b, or a config file of ours or of another program")
      ->required();
  arguments->machine.add_to(*command);
  command->add_option("--global-batch", arguments->global_batch, "samples of a step")
      ->required()
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}));
  command->add_option("--sequence", arguments->sequence, "tokens of a sample; else the model's")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000'000}));
  command->add_option("--top", arguments->top, "how many strategies to show")->check(CLI::Range(1, 10000));
  command->add_option("--write", arguments->write, "write the best strategy as a config for `train`");
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->footer(
      "Without --nodes or --devices: devices against time.\n"
      "Example:\n  ridgeline plan --model gpt-175b --machine frontier --nodes 128 --global-batch 640");
  command->callback([arguments, &exit_code] { exit_code = plan(*arguments); });
}

}  // namespace ridgeline::cli
