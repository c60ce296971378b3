#include "train/evaluate.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/log.h"
#include "data/tokenize.h"
#include "launch/threads.h"
#include "mesh/mesh.h"
#include "mesh/store.h"
#include "mesh/watchdog.h"
#include "train/checkpointing.h"
#include "train/rank_model.h"

namespace ridgeline::train {
namespace {

// Bytes of text among the targets of the first `samples` held-out samples.
int64_t text_bytes(const data::SampleSource& source, int64_t samples) {
  std::vector<int64_t> tokens(source.sequence()), targets(source.sequence());
  int64_t bytes = 0;
  for (int64_t sample = 0; sample < samples; ++sample) {
    source.validation_sample(sample, tokens, targets);
    bytes += std::count_if(targets.begin(), targets.end(), [](int64_t token) { return token != data::kEndOfDocument; });
  }
  return bytes;
}

Evaluation summarise(double loss, const data::SampleSource& source, int64_t samples, int64_t vocabulary) {
  Evaluation result;
  result.loss = loss;
  result.perplexity = std::exp(loss);
  result.samples = samples;
  result.tokens = samples * source.sequence();
  const int64_t bytes = vocabulary == data::kByteVocabulary ? text_bytes(source, samples) : 0;
  if (bytes > 0) {
    const double bits = loss * static_cast<double>(result.tokens) / std::numbers::ln2;
    result.bits_per_byte = bits / static_cast<double>(bytes);
  }
  return result;
}

Evaluation evaluate_on_mesh(const spec::TrainSpec& spec, const std::filesystem::path& checkpoint, int64_t samples,
                            const launch::RankEnvironment& environment, const std::shared_ptr<mesh::Store>& store) {
  const platform::Device device = platform::Device::select(spec.training.device, environment.local_rank);
  device.make_current();
  const data::SampleSource source(spec.data, spec.model.sequence, spec.model.vocabulary, spec.training.seed);
  source.require_validation(std::max<int64_t>(1, samples));
  const int64_t counted = samples > 0 ? samples : source.validation_samples();
  const mesh::Mesh mesh(
      mesh::MeshShape::of(spec.strategy), environment.rank, store, device,
      {.timeout = spec.training.communication_timeout, .one_machine = environment.local_world == environment.world});
  const c10::InferenceMode no_autograd;
  RankModel model(spec, mesh, source, nn::Gradients::none);
  checkpoint::CheckpointReader reader(checkpoint);
  read_parameters(reader, model.parameters());
  spdlog::info("{}: evaluating {} of {} held-out samples", checkpoint.string(), counted, source.validation_samples());
  const double loss = model.evaluate(counted);
  mesh.world().barrier().wait();  // none may leave while another still needs it
  return summarise(loss, source, counted, spec.model.vocabulary);
}

}  // namespace

Evaluation evaluate_command(const spec::TrainSpec& spec, const std::filesystem::path& checkpoint, int64_t samples,
                            const launch::RankEnvironment& environment) {
  platform::set_threads(spec.training.threads > 0 ? spec.training.threads : launch::threads_per_rank(environment));
  const auto store = mesh::Store::open(environment, spec.training.communication_timeout);
  mesh::Watchdog watchdog(store, environment.rank, environment.world);
  try {
    const Evaluation result = evaluate_on_mesh(spec, checkpoint, samples, environment, store);
    watchdog.finish();
    return result;
  } catch (const std::exception& error) {
    watchdog.fail(error);
  }
}

}  // namespace ridgeline::train
