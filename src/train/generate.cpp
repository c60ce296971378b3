#include "train/generate.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "checkpoint/reader.h"
#include "core/error.h"
#include "data/tokenize.h"
#include "train/checkpointing.h"
#include "train/rank_model.h"

namespace ridgeline::train {
namespace {

// The whole model on one rank, without anything that training alone needs.
spec::Strategy whole_model() {
  spec::Strategy strategy;
  strategy.data = 1;
  return strategy;
}

// The last `count` tokens of the text, or all of it.
std::span<const int64_t> tail(const std::vector<int64_t>& text, int64_t count) {
  return std::span(text).last(std::min<size_t>(text.size(), static_cast<size_t>(count)));
}

}  // namespace

TextModel::TextModel(const spec::TrainSpec& spec, const std::filesystem::path& checkpoint,
                     const platform::Device& device)
    : alone_(mesh::Communicator::make_single("generation")), context_{spec.model,
                                                                      whole_model(),
                                                                      spec::residual_placement(whole_model()),
                                                                      &alone_,
                                                                      spec.training.seed,
                                                                      scalar_type(spec.precision.compute),
                                                                      device.torch()} {
  const c10::InferenceMode no_autograd;
  const spec::Strategy& strategy = context_.strategy;
  std::vector<spec::ParameterSpec> declared = spec::declare_parameters(spec.model, strategy);
  spec::FlatLayout layout =
      spec::make_flat_layout(declared, spec::one_chunk_stages({{0, spec::unit_count(spec.model)}}), 0, 0, strategy);
  parameters_ = std::make_unique<nn::FlatParameters>(std::move(declared), std::move(layout), context_.compute,
                                                     context_.device, nn::Sharding{}, nn::Gradients::none);
  checkpoint::CheckpointReader reader(checkpoint);
  read_parameters(reader, *parameters_);
}

std::vector<int64_t> checked_prompt(std::span<const int64_t> prompt, const spec::ModelSpec& model) {
  for (size_t index = 0; index < prompt.size(); ++index) {
    if (prompt[index] >= 0 && prompt[index] < model.vocabulary) continue;
    throw InputError("prompt token {} (number {}): the model's vocabulary is 0 to {}", prompt[index], index,
                     model.vocabulary - 1);
  }
  if (!prompt.empty()) return {prompt.begin(), prompt.end()};
  if (model.vocabulary != data::kByteVocabulary) {
    throw InputError(
        "the prompt is empty, and which token begins a document of this vocabulary ({}) is not known: give at "
        "least one token by --prompt-tokens",
        model.vocabulary);
  }
  return {data::kEndOfDocument};
}

void generate(const TextModel& model, std::span<const int64_t> prompt, const Generation& generation, int64_t sample,
              const std::function<void(int64_t token)>& on_token) {
  const c10::InferenceMode no_autograd;
  std::vector<int64_t> text = checked_prompt(prompt, model.model());
  nn::Decoder decoder(model.context(), model.parameters());
  const int64_t after_slide = std::max<int64_t>(1, decoder.room() * 3 / 4);
  at::Tensor logits;
  for (int64_t position = 0; position < generation.tokens; ++position) {
    if (position > 0 && decoder.length() < decoder.room()) {
      logits = decoder.append(tail(text, 1));
    } else {
      decoder.clear();
      logits = decoder.append(tail(text, position == 0 ? decoder.room() : after_slide));
    }
    text.push_back(sample_token(logits, generation.sampling, sample, position));
    on_token(text.back());
    if (generation.stop_at_end && text.back() == data::kEndOfDocument) return;
  }
}

}  // namespace ridgeline::train
