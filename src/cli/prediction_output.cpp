#include "cli/prediction_output.h"

#include <fmt/format.h>

#include <vector>

#include "core/text.h"

namespace ridgeline::cli {

using nlohmann::json;

namespace {

bool is_interleaved(const spec::Strategy& strategy) { return strategy.virtual_pipeline > 1 && !strategy.is_vee(); }

std::string schedule_name(const spec::Strategy& strategy) {
  return is_interleaved(strategy) ? "interleaved" : to_string(strategy.schedule);
}

}  // namespace

json to_json(const spec::Strategy& strategy) {
  json document = {{"tensor", strategy.tensor},
                   {"pipeline", strategy.pipeline},
                   {"virtual_pipeline", strategy.virtual_pipeline},
                   {"data", strategy.data},
                   {"context", strategy.context},
                   {"expert", strategy.expert},
                   {"expert_tensor", strategy.expert_tensor},
                   {"zero_stage", strategy.zero_stage},
                   {"shard_group", strategy.shard_group},
                   {"offload_optimizer", strategy.offload_optimizer},
                   {"micro_batch", strategy.micro_batch},
                   {"global_batch", strategy.global_batch},
                   {"recompute", to_string(strategy.recompute)},
                   {"sequence_parallel", strategy.sequence_parallel},
                   {"schedule", schedule_name(strategy)}};
  if (strategy.context > 1) document["context_kind"] = to_string(strategy.context_kind);
  if (!strategy.stage_layers.empty()) document["stage_layers"] = strategy.stage_layers;
  return document;
}

json to_json(const simulate::Prediction& prediction) {
  const simulate::StageMemory& memory = prediction.memory;
  const simulate::StepTime& time = prediction.time;
  return {{"strategy", to_json(prediction.strategy)},
          {"step_seconds", prediction.step_seconds},
          {"tokens_per_second", prediction.tokens_per_second},
          {"tflops_per_device", prediction.tflops_per_device},
          {"hardware_tflops_per_device", prediction.hardware_tflops_per_device},
          {"mfu", prediction.mfu},
          {"hfu", prediction.hfu},
          {"fits", prediction.fit == simulate::Fit::fits},
          {"verdict", to_string(prediction.fit)},
          {"memory",
           {{"weights", memory.weights},
            {"gradients", memory.gradients},
            {"optimizer", memory.optimizer},
            {"activations", memory.activations},
            {"buffers", memory.buffers},
            {"total", memory.total()},
            {"low", memory.low},
            {"high", memory.high},
            {"stage", prediction.fullest_stage}}},
          {"time",
           {{"compute", time.compute},
            {"tensor_comm", time.tensor_comm},
            {"pipeline_comm", time.pipeline_comm},
            {"data_comm", time.data_comm},
            {"context_comm", time.context_comm},
            {"expert_comm", time.expert_comm},
            {"bubble", time.bubble},
            {"optimizer", time.optimizer}}}};
}

namespace {

json stage_json(const simulate::StageReport& stage) {
  return {{"layers", stage.layers},
          {"parameters", stage.parameters},
          {"forward_seconds", stage.times.forward()},
          {"backward_seconds", stage.times.backward()},
          {"memory_total", stage.memory.total()},
          {"memory",
           {{"weights", stage.memory.weights},
            {"gradients", stage.memory.gradients},
            {"optimizer", stage.memory.optimizer},
            {"activations", stage.memory.activations},
            {"buffers", stage.memory.buffers},
            {"total", stage.memory.total()}}}};
}

json part_json(const simulate::PartReport& part) {
  return {{"name", part.name},
          {"forward_seconds", part.forward},
          {"backward_seconds", part.backward},
          {"recompute_seconds", part.recompute},
          {"saved_bytes", part.saved_bytes}};
}

}  // namespace

json simulation_json(simulate::Evaluator& evaluator, const spec::Strategy& strategy) {
  json document = to_json(evaluator.predict(strategy));
  document["machine"] = evaluator.machine().name;
  document["machine_purpose"] = to_string(evaluator.machine().purpose);
  document["precision"] = to_string(evaluator.compute());
  document["stages"] = json::array();
  for (const simulate::StageReport& stage : evaluator.stages(strategy)) document["stages"].push_back(stage_json(stage));
  document["parts"] = json::array();
  for (const simulate::PartReport& part : evaluator.parts(strategy)) document["parts"].push_back(part_json(part));
  return document;
}

std::string describe(const spec::Strategy& strategy) {
  std::string text = fmt::format("tensor {}", strategy.tensor);
  if (strategy.context > 1)
    text += fmt::format(" x context {} ({})", strategy.context, to_string(strategy.context_kind));
  text +=
      fmt::format(" x pipeline {} x data {}, micro-batch {}", strategy.pipeline, strategy.data, strategy.micro_batch);
  if (strategy.expert > 1) text += fmt::format(", experts on {} ranks", strategy.expert);
  if (strategy.keeps_experts_whole()) text += ", experts whole";
  if (is_interleaved(strategy)) text += fmt::format(", {} chunks a stage", strategy.virtual_pipeline);
  if (strategy.pipeline > 1 && strategy.schedule != spec::ScheduleKind::one_f_one_b) {
    text += ", " + to_string(strategy.schedule);
  }
  text += fmt::format(", recompute {}", to_string(strategy.recompute));
  if (strategy.sequence_parallel) text += ", sequence parallel";
  if (strategy.zero_stage > 0) text += fmt::format(", ZeRO-{}", strategy.zero_stage);
  if (strategy.shards() < strategy.copies()) text += fmt::format(" over {} ranks each", strategy.shards());
  if (strategy.offload_optimizer) text += ", optimizer in host memory";
  return text;
}

std::string prediction_header() {
  return fmt::format(
      "{:>3} {:>3} {:>4} {:>5} {:>3} {:>3} {:>13} {:>4} {:>9} {:>3} {:>2} {:>9} {:>9} {:>8} {:>6} {:>6} {:>9} {:>9}  {}\n",
      "TP", "CP", "PP", "DP", "EP", "VP", "schedule", "MBS", "recompute", "SP", "Z", "step", "tokens/s", "TFLOP/s", "MFU",
      "HFU", "memory", "at worst", "verdict");
}

std::string prediction_line(const simulate::Prediction& prediction) {
  const spec::Strategy& strategy = prediction.strategy;
  return fmt::format(
      "{:3} {:3} {:4} {:5} {:3} {:3} {:>13} {:4} {:>9} {:>3} {:2} {:>9} {:>9} {:8.1f} {:5.1f}% {:5.1f}% {:>9} {:>9}  {}\n",
      strategy.tensor, strategy.context, strategy.pipeline, strategy.data, strategy.expert, strategy.virtual_pipeline,
      strategy.pipeline == 1 ? "-" : schedule_name(strategy), strategy.micro_batch, to_string(strategy.recompute),
      strategy.sequence_parallel ? "yes" : "no", strategy.zero_stage, format_duration(prediction.step_seconds),
      format_count(prediction.tokens_per_second), prediction.tflops_per_device, 100 * prediction.mfu,
      100 * prediction.hfu, format_bytes(prediction.memory.total()), format_bytes(prediction.memory.high),
      to_string(prediction.fit));
}

std::string time_table(const simulate::Prediction& prediction) {
  const simulate::StepTime& time = prediction.time;
  std::vector<std::pair<const char*, double>> parts = {
      {"compute", time.compute}, {"tensor axis", time.tensor_comm}, {"stage messages", time.pipeline_comm},
      {"bubble", time.bubble},   {"data axis", time.data_comm},     {"optimizer", time.optimizer}};
  if (prediction.strategy.context > 1) parts.insert(parts.begin() + 2, {"context axis", time.context_comm});
  if (prediction.strategy.expert > 1) parts.insert(parts.begin() + 2, {"experts", time.expert_comm});
  std::string text;
  for (const auto& [name, seconds] : parts) {
    text += fmt::format("  {:16} {:>10}  {:5.1f} %\n", name, format_duration(seconds),
                        100 * seconds / prediction.step_seconds);
  }
  return text;
}

std::string memory_table(const simulate::StageMemory& memory, double device_gib) {
  const std::pair<const char*, double> parts[] = {{"weights", memory.weights},     {"gradients", memory.gradients},
                                                  {"optimizer", memory.optimizer}, {"activations", memory.activations},
                                                  {"buffers", memory.buffers},     {"total", memory.total()},
                                                  {"likely reserved", memory.low}, {"at worst", memory.high}};
  std::string text;
  for (const auto& [name, bytes] : parts) text += fmt::format("  {:16} {:>10}\n", name, format_bytes(bytes));
  return text + fmt::format("  {:16} {:>10}\n", "device", format_bytes(device_gib * 1024 * 1024 * 1024));
}

}  // namespace ridgeline::cli
