#include "train/train.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <new>
#include <optional>

#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "launch/threads.h"
#include "mesh/failure.h"
#include "mesh/mesh.h"
#include "mesh/store.h"
#include "mesh/watchdog.h"
#include "nn/attention.h"
#include "platform/device.h"
#include "project/step_model.h"
#include "train/preflight.h"
#include "train/run.h"
#include "train/run_lock.h"
#include "train/stop_signal.h"
#include "train/trainer.h"

namespace ridgeline::train {
namespace {

// Layers of the stages: "5+6+6+5", and with chunks "2/1+1/1".
std::string describe_stages(const std::vector<spec::StageUnits>& stages, const spec::ModelSpec& model) {
  std::vector<std::string> layers;
  for (const spec::StageUnits& stage : stages) {
    std::vector<std::string> chunks;
    for (const spec::Range& units : stage) {
      const int64_t outside = (units.begin == 0 ? 1 : 0) + (units.end == spec::unit_count(model) ? 1 : 0);
      chunks.push_back(std::to_string(units.size() - outside));
    }
    layers.push_back(join(chunks, "/"));
  }
  return join(layers, "+");
}

std::string describe_sharding(const spec::Strategy& strategy) {
  if (!strategy.shards_optimizer()) return "";
  if (strategy.shards() == strategy.data) return fmt::format(" (ZeRO-{})", strategy.zero_stage);
  return fmt::format(" (ZeRO-{} over {} ranks each)", strategy.zero_stage, strategy.shards());
}

std::string attention_kernel_of(const spec::TrainSpec& spec, const platform::Device& device) {
  nn::AttentionPattern pattern = nn::attention_pattern(spec.model);
  pattern.dropout.probability = spec.model.attention_dropout;
  if (spec.data.separate_documents) pattern.documents = at::zeros({1, 1}, at::kLong);
  return nn::attention_kernel(device.torch(), scalar_type(spec.precision.compute), pattern);
}

std::string describe_schedule(const spec::Strategy& strategy) {
  if (strategy.virtual_pipeline == 1) return to_string(strategy.schedule);
  const std::string name = strategy.is_vee() ? to_string(strategy.schedule) : "interleaved 1f1b";
  return fmt::format("{}, {} chunks a stage", name, strategy.virtual_pipeline);
}

void log_start(const spec::TrainSpec& spec, const Trainer& trainer, const platform::Device& device) {
  const spec::Strategy& strategy = spec.strategy;
  spdlog::info("model: {} parameters, {} layers, hidden {}, {} heads, vocabulary {}, sequence {}",
               format_count(static_cast<double>(spec::parameter_count(spec.model))), spec.model.layers,
               spec.model.hidden, spec.model.heads, spec.model.vocabulary, spec.model.sequence);
  spdlog::info("layout: tensor {}{} x pipeline {} ({}, layers {}) x data {}{}", strategy.tensor,
               strategy.sequence_parallel ? " (sequence parallel)" : "", strategy.pipeline, describe_schedule(strategy),
               describe_stages(trainer.stages(), spec.model), strategy.data, describe_sharding(strategy));
  spdlog::info("batch: {} samples = {} micro-batches of {} on each of {} replicas; {}, recomputation {}",
               strategy.global_batch, strategy.micro_batches(), strategy.micro_batch, strategy.data,
               to_string(spec.precision.compute), to_string(strategy.recompute));
  spdlog::info("device: {}, {} threads a rank, attention: {}", device.name(), platform::threads(),
               attention_kernel_of(spec, device));
}

data::SampleSource open_data(const spec::TrainSpec& spec) {
  try {
    return {spec.data, spec.model.sequence, spec.model.vocabulary, spec.training.seed};
  } catch (const InputError& error) {
    if (spec.strategy.ranks() == 1) throw;
    // A single rank may be the one whose machine has no such file, or another one.
    throw InputError("data.path = \"{}\": {}", spec.data.path, error.what());
  }
}

// The words of an allocator are about its source code; users need to know how much was wanted, and what to turn.
std::optional<Failure> out_of_memory(const std::exception& error) {
  constexpr const char* kAdvice =
      "Use a smaller strategy.micro_batch, strategy.recompute, a higher strategy.zero_stage, more tensor or pipeline "
      "ranks, "
      "or a smaller model";
  const std::string text = error.what();
  const std::string wanted = "you tried to allocate ";
  if (const auto at = text.find(wanted); at != std::string::npos) {
    const double bytes = std::strtod(text.c_str() + at + wanted.size(), nullptr);
    return Failure("out of memory: {} more were wanted. {}", format_bytes(bytes), kAdvice);
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return Failure("out of memory. {}", kAdvice);
  }
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
    return Failure("out of memory on a device: {}. {}", mesh::plain_message(error), kAdvice);
  }
  return std::nullopt;
}

// Of the whole job, as `simulate` predicts it.
std::optional<double> planned_step_seconds(const spec::TrainSpec& spec, const std::string& machine) {
  if (machine.empty()) return std::nullopt;
  project::StepModel steps(spec, spec::load_machine(machine), cost::recipe("ridgeline"));
  const double seconds = steps.seconds(spec.strategy.ranks(), spec.strategy.global_batch).middle;
  spdlog::info("plan: a step of {} is predicted for {}", format_duration(seconds), machine);
  return seconds;
}

int train_on_mesh(const spec::TrainSpec& spec, const launch::RankEnvironment& environment, const std::string& machine,
                  const std::shared_ptr<mesh::Store>& store, mesh::Watchdog& watchdog) {
  const platform::Device device = platform::Device::select(spec.training.device, environment.local_rank);
  device.make_current();
  const data::SampleSource source = open_data(spec);
  check_before_start(spec, source);
  check_memory(spec, device.total_bytes() / (device.is_cpu() ? environment.local_world : 1), device.is_cpu());
  std::optional<RunLock> lock;  // of rank 0, for all
  if (environment.rank == 0) lock.emplace(spec.training.run);
  watchdog.progress(0, "communicators");
  const mesh::Mesh mesh(
      mesh::MeshShape::of(spec.strategy), environment.rank, store, device,
      {.timeout = spec.training.communication_timeout, .one_machine = environment.local_world == environment.world});
  if (environment.world > 1) spdlog::info("ranks talk over {}", mesh.world().back_end());
  watchdog.progress(0, "model");
  Trainer trainer(spec, mesh, source);
  log_start(spec, trainer, device);
  Run run(spec, trainer, mesh, device, watchdog, planned_step_seconds(spec, machine));
  const bool finished = run.execute();
  mesh.world().barrier().wait();  // none may leave while another still needs it
  return finished ? kFinished : kInterrupted;
}

}  // namespace

int train_command(const spec::TrainSpec& spec, const launch::RankEnvironment& environment, const std::string& machine) {
  const StopSignal stop(environment.rank == 0);
  platform::set_threads(spec.training.threads > 0 ? spec.training.threads : launch::threads_per_rank(environment));
  const auto store = mesh::Store::open(environment, spec.training.communication_timeout);
  mesh::Watchdog watchdog(store, environment.rank, environment.world);
  try {
    const int code = train_on_mesh(spec, environment, machine, store, watchdog);
    watchdog.finish();
    return code;
  } catch (const std::exception& error) {
    if (const auto failure = out_of_memory(error)) watchdog.fail(*failure);
    watchdog.fail(error);
  }
}

}  // namespace ridgeline::train
