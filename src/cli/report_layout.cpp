#include "cli/report_layout.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "cli/prediction_output.h"
#include "core/text.h"
#include "cost/memory.h"
#include "cost/step_schedule.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;

constexpr int64_t kMostSpans = 8'000;      // of a picture; a step of more is drawn with fewer micro-batches
constexpr int64_t kMostDrawable = 40'000;  // where even the fewest make more, there is no picture
constexpr double kTicks = 1e5;             // of a picture's length

int64_t spans_of(const spec::Strategy& strategy, int64_t micro_batches) {
  return strategy.global_stages() * micro_batches * (strategy.splits_backward() ? 3 : 2);
}

// Micro-batches to draw: all, or as many as show a start, a steady state and an end. 0: too many in any case.
int64_t drawn_micro_batches(const spec::Strategy& strategy) {
  const int64_t all = strategy.micro_batches();
  if (spans_of(strategy, all) <= kMostSpans) return all;
  // Interleaved schedules want a multiple of the stages; a file's order is that of its own number.
  const bool can_be_cut = strategy.schedule_file.empty();
  const int64_t fewest = can_be_cut ? std::min(all, 3 * strategy.pipeline) : all;
  return spans_of(strategy, fewest) <= kMostDrawable ? fewest : 0;
}

int kind_number(schedule::ActionKind kind) {
  switch (kind) {
    case schedule::ActionKind::forward:
      return 0;
    case schedule::ActionKind::backward:
      return 1;
    case schedule::ActionKind::backward_input:
      return 2;
    default:
      return 3;
  }
}

json timeline_json(const spec::TrainSpec& train, simulate::Evaluator* evaluator) {
  spec::Strategy strategy = train.strategy;
  const int64_t drawn = drawn_micro_batches(strategy);
  if (drawn == 0) return nullptr;
  strategy.global_batch = drawn * strategy.micro_batch * strategy.data;
  const auto equal_stages = [&] {
    const std::vector<simulate::ChunkDurations> durations(static_cast<size_t>(strategy.global_stages()),
                                                          {.forward = 1, .backward = 2, .backward_weight = 1});
    return simulate::play(cost::step_schedule(train.model, strategy), durations, 0, true);
  };
  const simulate::Timeline timeline = evaluator != nullptr ? evaluator->play(strategy) : equal_stages();
  const double tick = timeline.seconds / kTicks;
  std::vector<json> stages(timeline.busy.size(), json::array());
  for (const schedule::Span& span : timeline.spans) {
    stages[static_cast<size_t>(span.stage)].push_back({std::llround(span.begin / tick), std::llround(span.end / tick),
                                                       kind_number(span.action.kind), span.action.micro_batch,
                                                       span.action.chunk});
  }
  double busy = 0;
  for (const double stage : timeline.busy) busy += stage / timeline.seconds / static_cast<double>(stages.size());
  return {{"stages", stages.size()},
          {"micro_batches", train.strategy.micro_batches()},
          {"drawn", drawn},
          {"unit", evaluator != nullptr ? "seconds" : "forward"},
          {"tick", tick},
          {"idle_share", 1 - busy},
          {"spans", stages}};
}

json account_json(const spec::TrainSpec& train) {
  json stages = json::array();
  for (int64_t stage = 0; stage < train.strategy.pipeline; ++stage) {
    const cost::Memory memory = cost::device_memory(train.model, train.strategy, train.precision.compute, stage, 0);
    stages.push_back({{"memory",
                       {{"weights", memory.weights},
                        {"gradients", memory.gradients},
                        {"optimizer", memory.optimizer},
                        {"activations", memory.activations},
                        {"buffers", memory.buffers + memory.messages},
                        {"total", memory.total()}}}});
  }
  return {{"strategy", to_json(train.strategy)}, {"precision", to_string(train.precision.compute)}, {"stages", stages}};
}

}  // namespace

json layout_json(const spec::TrainSpec& train, const std::optional<spec::Machine>& machine,
                 const cost::Recipe& recipe) {
  json document;
  if (machine) {
    simulate::Evaluator evaluator(train.model, *machine, recipe, train.precision.compute);
    document = simulation_json(evaluator, train.strategy);
    document["timeline"] = timeline_json(train, &evaluator);
    document["device_bytes"] = machine->device.memory_gib * 1024 * 1024 * 1024;
  } else {
    document = account_json(train);
    document["timeline"] = timeline_json(train, nullptr);
  }
  const cost::FullestDevice fullest = cost::fullest_device(train.model, train.strategy, train.precision.compute);
  document["tensor_bytes"] = fullest.memory.total();
  document["description"] = describe(train.strategy);
  document["devices"] = train.strategy.ranks();
  return document;
}

json machine_json(const spec::Machine& machine) {
  json rows = json::array();
  const auto add = [&](const char* name, const std::string& value) { rows.push_back({name, value}); };
  const auto add_number = [&](const char* name, double value, const char* unit) {
    if (value > 0) rows.push_back({name, fmt::format("{:.4g} {}", value, unit)});
  };
  add("Name", machine.name);
  if (!machine.description.empty()) add("What it is", machine.description);
  if (machine.nodes > 0) add("Nodes", fmt::format("{}", machine.nodes));
  add("Devices of a node", fmt::format("{}", machine.devices_per_node));
  if (!machine.device.name.empty()) add("Device", machine.device.name);
  add_number("Memory of a device", machine.device.memory_gib, "GiB");
  add_number("Memory bandwidth", machine.device.memory_gb_per_s, "GB/s");
  add_number("Peak in bf16", machine.device.peak_bf16_tflops, "TFLOP/s");
  add_number("Peak in fp32", machine.device.peak_fp32_tflops, "TFLOP/s");
  add_number("Links within a node, a device's share", machine.links.node_gb_per_s, "GB/s");
  add_number("Network of a node", machine.node_network_gb_per_s(), "GB/s");
  add("Software stack", machine.stack.name);
  if (machine.purpose == spec::Purpose::curve_fit) {
    add("Purpose", "a fit of recorded runs: for other models and strategies predictions may be far off");
  }
  return rows;
}

json settings_json(const std::string& toml) {
  json rows = json::array();
  std::istringstream lines(toml);
  std::string table;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      table = line.substr(1, line.find(']') - 1) + ".";
    } else if (const size_t equals = line.find(" = "); equals != std::string::npos) {
      rows.push_back({table + line.substr(0, equals), line.substr(equals + 3)});
    }
  }
  return rows;
}

}  // namespace ridgeline::cli
