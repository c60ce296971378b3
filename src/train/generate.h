// Writing with a trained model on one rank.
//
//   TextModel model(spec, checkpoint, Device::select("auto"));
//   generate(model, tokens_of("Once"), {.tokens = 200}, [](int64_t token) { ... });
//
// Keys and values of the window are kept (nn/decoder.h). A window that is full slides by a quarter of its length and is
// computed again, so that a token costs about four passes of one token at most, and always sees at least three quarters
// of the window.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "mesh/communicator.h"
#include "nn/decoder.h"
#include "platform/device.h"
#include "spec/train.h"
#include "train/sampling.h"

namespace ridgeline::train {

// The parameters of a checkpoint, whole on one rank, whatever layout wrote it.
class TextModel {
 public:
  // `spec`: what the checkpoint was written under; its strategy is not used. InputError where the two disagree.
  TextModel(const spec::TrainSpec& spec, const std::filesystem::path& checkpoint, const platform::Device& device);

  const spec::ModelSpec& model() const { return context_.model; }
  const nn::Context& context() const { return context_; }
  const nn::FlatParameters& parameters() const { return *parameters_; }

 private:
  mesh::Communicator alone_;
  nn::Context context_;
  std::unique_ptr<nn::FlatParameters> parameters_;
};

struct Generation {
  int64_t tokens = 200;
  bool stop_at_end = false;  // after the end of a document
  Sampling sampling;
};

// What the model is to read for `prompt`: the end of a document, after which the next begins, where it is empty. Throws
// InputError for a token outside the vocabulary, and for an empty prompt where tokens are not bytes.
std::vector<int64_t> checked_prompt(std::span<const int64_t> prompt, const spec::ModelSpec& model);

// Calls `on_token` with each token that follows `prompt`, as it is chosen. `sample` numbers the text. A prompt longer
// than the window counts by its end. Throws InputError as checked_prompt does.
void generate(const TextModel& model, std::span<const int64_t> prompt, const Generation& generation, int64_t sample,
              const std::function<void(int64_t token)>& on_token);

}  // namespace ridgeline::train
