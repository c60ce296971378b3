// dump_logits CHECKPOINT FILE: writes the logits that the checkpoint's model gives for one sample of tokens
// (7 * position + 3) modulo the vocabulary, [sequence, vocabulary] in fp32.
#include <cstdio>
#include <string>

#include "checkpoint/reader.h"
#include "nn/stage.h"
#include "spec/config.h"
#include "train/generate.h"
#include "train/write_tensors.h"

namespace ridgeline::train {
namespace {

void dump(const std::string& checkpoint, const std::string& file) {
  spec::TrainSpec spec;
  Schema schema;
  spec::bind(schema, spec);
  schema.read_text(checkpoint::CheckpointReader(checkpoint).manifest().state.at("config").get<std::string>(), "config");
  schema.apply();
  const TextModel model(spec, checkpoint, platform::Device::select("cpu"));
  const nn::Stage stage(model.context(), model.parameters(), {0, spec::unit_count(model.model())});
  nn::MicroBatch batch;
  batch.size = 1;
  batch.sequence = spec.model.sequence;
  batch.tokens = at::arange(batch.sequence, at::kLong).mul_(7).add_(3).remainder_(spec.model.vocabulary);
  batch.samples = at::zeros({1}, at::kLong);
  batch.training = false;
  write_tensors(file, {{"logits", stage.logits({}, batch)}});
}

}  // namespace
}  // namespace ridgeline::train

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: dump_logits CHECKPOINT FILE\n");
    return 2;
  }
  ridgeline::train::dump(argv[1], argv[2]);
}
