#include "train/train.h"

#include "core/log.h"
#include "core/text.h"
#include "launch/threads.h"
#include "mesh/mesh.h"
#include "mesh/store.h"
#include "mesh/watchdog.h"
#include "nn/attention.h"
#include "platform/device.h"
#include "train/preflight.h"
#include "train/run.h"
#include "train/trainer.h"

namespace ridgeline::train {
namespace {

std::string describe_stages(const std::vector<spec::Range>& stages, const spec::ModelSpec& model) {
  std::vector<std::string> layers;
  for (const spec::Range& units : stages) {
    const int64_t outside = (units.begin == 0 ? 1 : 0) + (units.end == spec::unit_count(model) ? 1 : 0);
    layers.push_back(std::to_string(units.size() - outside));
  }
  return join(layers, "+");
}

void log_start(const spec::TrainSpec& spec, const Trainer& trainer, const platform::Device& device) {
  const spec::Strategy& strategy = spec.strategy;
  spdlog::info("model: {} parameters, {} layers, hidden {}, {} heads, vocabulary {}, sequence {}",
               format_count(static_cast<double>(spec::parameter_count(spec.model))), spec.model.layers, spec.model.hidden,
               spec.model.heads, spec.model.vocabulary, spec.model.sequence);
  spdlog::info("layout: tensor {}{} x pipeline {} ({}, layers {}) x data {}{}", strategy.tensor,
               strategy.sequence_parallel ? " (sequence parallel)" : "", strategy.pipeline, to_string(strategy.schedule),
               describe_stages(trainer.stages(), spec.model), strategy.data, strategy.zero_stage > 0 ? " (ZeRO-1)" : "");
  spdlog::info("batch: {} samples = {} micro-batches of {} on each of {} replicas; {}, recomputation {}",
               strategy.global_batch, strategy.micro_batches(), strategy.micro_batch, strategy.data,
               to_string(spec.precision.compute), to_string(strategy.recompute));
  spdlog::info("device: {}, {} threads a rank, attention: {}", device.name(), platform::threads(),
               nn::attention_kernel(device.torch(), scalar_type(spec.precision.compute), spec.model.attention_dropout > 0));
}

int train_on_mesh(const spec::TrainSpec& spec, const launch::RankEnvironment& environment,
                  const std::shared_ptr<mesh::Store>& store, mesh::Watchdog& watchdog) {
  const platform::Device device = platform::Device::select(spec.training.device, environment.local_rank);
  device.make_current();
  const data::SampleSource source(spec.data, spec.model.sequence, spec.model.vocabulary, spec.training.seed);
  check_before_start(spec, source);
  watchdog.progress(0, "communicators");
  const mesh::Mesh mesh(mesh::MeshShape::of(spec.strategy), environment.rank, store, device,
                        {.timeout = spec.training.communication_timeout,
                         .one_machine = environment.local_world == environment.world});
  watchdog.progress(0, "model");
  Trainer trainer(spec, mesh, source);
  log_start(spec, trainer, device);
  Run run(spec, trainer, mesh, device, watchdog);
  const bool finished = run.execute();
  mesh.world().barrier().wait();  // none may leave while another still needs it
  return finished ? kFinished : kInterrupted;
}

}  // namespace

int train_command(const spec::TrainSpec& spec, const launch::RankEnvironment& environment) {
  platform::set_threads(spec.training.threads > 0 ? spec.training.threads : launch::threads_per_rank(environment));
  const auto store = mesh::Store::open(environment, spec.training.communication_timeout);
  mesh::Watchdog watchdog(store, environment.rank, environment.world);
  try {
    const int code = train_on_mesh(spec, environment, store, watchdog);
    watchdog.finish();
    return code;
  } catch (const std::exception& error) {
    watchdog.fail(error);
  }
}

}  // namespace ridgeline::train
