// From a trained checkpoint to text: sampling, the bytes that are shown, and a model that has learned a rhyme by heart.
#include "train/generate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "core/error.h"
#include "data/tokenize.h"
#include "train/byte_text.h"
#include "train/evaluate.h"
#include "train/small_run.h"

namespace ridgeline::train {
namespace {

const at::Tensor& logits() {
  static const at::Tensor values = at::tensor({0.5, 2.0, 1.0, 2.0, -1.0}, at::kFloat);
  return values;
}

// Shares of the tokens in many draws.
std::vector<double> shares(const Sampling& sampling) {
  constexpr int64_t kDraws = 20000;
  std::vector<double> counts(logits().numel());
  for (int64_t position = 0; position < kDraws; ++position) ++counts[sample_token(logits(), sampling, 3, position)];
  for (double& count : counts) count /= kDraws;
  return counts;
}

TEST(Sampling, GreedyTakesTheLikeliestAndOfEqualsTheFirst) {
  EXPECT_EQ(sample_token(logits(), {.temperature = 0}, 0, 0), 1);
  EXPECT_EQ(sample_token(logits(), {.temperature = 1, .top_k = 1}, 0, 0), 1);
  EXPECT_EQ(sample_token(logits(), {.temperature = 1, .top_k = 0, .top_p = 1e-9}, 0, 0), 1);
  EXPECT_EQ(sample_token(logits().to(at::kBFloat16), {.temperature = 0}, 0, 0), 1);
}

TEST(Sampling, SharesAreThoseOfTheSoftmax) {
  for (const double temperature : {0.5, 1.0, 3.0}) {
    const at::Tensor expected = at::softmax(logits().to(at::kDouble) / temperature, 0);
    const std::vector<double> actual = shares({.temperature = temperature, .top_k = 0});
    for (size_t token = 0; token < actual.size(); ++token) {
      const double share = expected[static_cast<int64_t>(token)].item<double>();
      EXPECT_NEAR(actual[token], share, 5 * std::sqrt(share * (1 - share) / 20000)) << "token " << token;
    }
  }
}

TEST(Sampling, CutsLeaveOnlyTheLikeliest) {
  const std::vector<double> top_k = shares({.temperature = 1, .top_k = 3});
  EXPECT_EQ(top_k[0] + top_k[4], 0.0);
  EXPECT_GT(std::min({top_k[1], top_k[2], top_k[3]}), 0.1);
  // The two likeliest have 0.37 each: half needs both, and no third.
  const std::vector<double> top_p = shares({.temperature = 1, .top_k = 0, .top_p = 0.5});
  EXPECT_EQ(top_p[0] + top_p[2] + top_p[4], 0.0);
  EXPECT_NEAR(top_p[1], 0.5, 0.02);
}

TEST(Sampling, IsAFunctionOfSeedTextAndPosition) {
  const auto draws = [](uint64_t seed, int64_t sample) {
    std::vector<int64_t> tokens;
    for (int64_t position = 0; position < 50; ++position) {
      tokens.push_back(sample_token(logits(), {.seed = seed}, sample, position));
    }
    return tokens;
  };
  EXPECT_EQ(draws(1, 0), draws(1, 0));
  EXPECT_NE(draws(1, 0), draws(2, 0));
  EXPECT_NE(draws(1, 0), draws(1, 1));
  EXPECT_THROW(sample_token(logits() / 0.0, {}, 0, 0), Failure);
}

TEST(ByteText, ShowsACharacterWhenItIsWhole) {
  ByteText text;
  EXPECT_EQ(text.add('a'), "a");
  EXPECT_EQ(text.add(0xE2), "");
  EXPECT_EQ(text.add(0x82), "");
  EXPECT_EQ(text.add(0xAC), "\u20AC");
  EXPECT_EQ(text.add(0xF0), "");
  EXPECT_EQ(text.add(data::kEndOfDocument), "\uFFFD\n\n");
  EXPECT_EQ(text.add(0xC3), "");
  EXPECT_EQ(text.finish(), "\uFFFD");
  EXPECT_EQ(text.finish(), "");
}

TEST(ByteText, WhatIsNoTextIsReplaced) {
  const auto shown = [](const std::string& bytes) { return text_of(tokens_of(bytes)); };
  const std::string good = "tab\t line\n \u00E9 \u20AC \U0001F600 \uD7FF \uE000 \U0010FFFF";
  EXPECT_EQ(shown(good), good);
  EXPECT_EQ(shown("a\x80z"), "a\uFFFDz");
  EXPECT_EQ(shown("\xC0\xAF"), "\uFFFD\uFFFD") << "an overlong form";
  EXPECT_EQ(shown("\xE0\x80\x80"), "\uFFFD\uFFFD\uFFFD") << "an overlong form";
  EXPECT_EQ(shown("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD") << "a surrogate";
  EXPECT_EQ(shown("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD") << "past U+10FFFF";
  EXPECT_EQ(shown("\xE2\x82z"), "\uFFFDz") << "a character that breaks off";
  EXPECT_EQ(shown("\x1B[2J\x7F\r"), "\uFFFD[2J\uFFFD\uFFFD") << "a terminal's commands";
  EXPECT_EQ(shown("\u0085"), "\uFFFD") << "a control character of two bytes";
}

// A model of byte tokens that has seen nothing but one rhyme, trained by two stages of two ranks.
class Rhyme : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder();
    data::TokenWriter writer((folder_->path() / "tokens").string(), data::token_type_for(data::kByteVocabulary));
    for (int64_t i = 0; i < 400; ++i) {
      std::vector<int64_t> document = tokens_of(kRhyme);
      document.push_back(data::kEndOfDocument);
      writer.add(std::span<const int64_t>(document));
      writer.end_document();
    }
    writer.finish();
    spec::TrainSpec layout = spec();
    layout.strategy.tensor = 2;
    layout.strategy.pipeline = 2;
    with_trainers(layout, 4, [&](Trainer& trainer, const mesh::Mesh&) {
      for (int64_t step = 0; step < layout.training.steps; ++step) trainer.step(step);
      trainer.save(folder_->path() / "checkpoints", layout.training.steps);
    });
  }
  static void TearDownTestSuite() { delete folder_; }

  static spec::TrainSpec spec() {
    spec::TrainSpec spec = small_spec((folder_->path() / "tokens").string());
    spec.model.layers = 2;
    spec.model.vocabulary = data::kByteVocabulary;
    spec.optimizer.lr = 1e-2;
    spec.optimizer.min_lr = 1e-3;
    spec.training.steps = 80;
    spec.training.device = "cpu";
    spec.training.threads = 1;
    return spec;
  }
  static std::filesystem::path checkpoint() {
    return folder_->path() / "checkpoints" / fmt::format("step-{:08}", spec().training.steps);
  }
  static TextModel model() { return TextModel(spec(), checkpoint(), platform::Device::select("cpu")); }
  static std::vector<int64_t> write(const TextModel& model, const std::vector<int64_t>& prompt,
                                    const Generation& generation, int64_t sample = 0) {
    std::vector<int64_t> tokens;
    generate(model, prompt, generation, sample, [&](int64_t token) { tokens.push_back(token); });
    return tokens;
  }

  static constexpr const char* kRhyme = "Humpty sat on a wall";
  static TemporaryFolder* folder_;
};
TemporaryFolder* Rhyme::folder_ = nullptr;

TEST_F(Rhyme, IsContinuedPastTheEndOfTheWindow) {
  const TextModel text_model = model();
  const std::vector<int64_t> tokens =
      write(text_model, tokens_of("Humpty sat"), {.tokens = 74, .sampling = {.temperature = 0}});
  const std::string again = std::string("\n\n") + kRhyme;
  EXPECT_EQ(text_of(tokens), " on a wall" + again + again + again + "\n\n") << "a window is 16 tokens";
}

TEST_F(Rhyme, EndsAndBeginsWithADocument) {
  const TextModel text_model = model();
  const Generation generation{.tokens = 100, .stop_at_end = true, .sampling = {.temperature = 0}};
  const std::vector<int64_t> tokens = write(text_model, {}, generation);
  EXPECT_EQ(text_of(tokens), std::string(kRhyme) + "\n\n");
  EXPECT_EQ(tokens.back(), data::kEndOfDocument);
  // A prompt longer than the window counts by its end.
  EXPECT_EQ(text_of(write(text_model, tokens_of("is not known. Humpty sat on a"), generation)), " wall\n\n");
}

TEST_F(Rhyme, SeedsMakeTexts) {
  const TextModel text_model = model();
  const auto text = [&](uint64_t seed, int64_t sample) {
    return write(text_model, {}, {.tokens = 60, .sampling = {.temperature = 5, .top_k = 0, .seed = seed}}, sample);
  };
  EXPECT_EQ(text(1, 0), text(1, 0));
  EXPECT_NE(text(1, 0), text(2, 0));
  EXPECT_NE(text(1, 0), text(1, 1));
}

TEST_F(Rhyme, ATokenOutsideTheVocabularyIsNamed) {
  const TextModel text_model = model();
  try {
    write(text_model, {1, 257}, {});
    FAIL() << "token 257 was taken";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("prompt token 257 (number 1): the model's vocabulary is 0 to 256"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(Rhyme, EvaluationIsTheTrainersOwn) {
  spec::TrainSpec one = spec();
  double expected = 0;
  with_trainers(one, 1, [&](Trainer& trainer, const mesh::Mesh&) {
    trainer.load(checkpoint());
    expected = trainer.evaluate(20);
  });
  spec::derive_data(one.strategy, one.model, 1);
  const Evaluation result = evaluate_command(one, checkpoint(), 20, {});
  EXPECT_EQ(result.loss, expected);
  EXPECT_EQ(result.perplexity, std::exp(expected));
  EXPECT_EQ(result.samples, 20);
  EXPECT_EQ(result.tokens, 20 * 16);
  // One token in 21 ends a document and is no byte; 320 targets hold 15 or 16 of them.
  ASSERT_TRUE(result.bits_per_byte.has_value());
  const double bits = expected / std::log(2.0) * 320;
  EXPECT_GE(*result.bits_per_byte, bits / 305 * (1 - 1e-12));
  EXPECT_LE(*result.bits_per_byte, bits / 304 * (1 + 1e-12));
  EXPECT_LT(result.loss, 1.0) << "the rhyme was not learned";

  const data::SampleSource source(one.data, one.model.sequence, one.model.vocabulary, one.training.seed);
  EXPECT_EQ(evaluate_command(one, checkpoint(), 0, {}).samples, source.validation_samples());
}

// A checkpoint that training could not go on from: no moments, no state.
TEST_F(Rhyme, ParametersAloneSuffice) {
  checkpoint::CheckpointReader reader(checkpoint());
  std::vector<std::vector<std::byte>> values;
  std::vector<checkpoint::TensorShard> shards;
  for (const checkpoint::TensorRecord& tensor : reader.manifest().tensors) {
    if (tensor.name.ends_with("_moment")) continue;
    const checkpoint::Slice whole = checkpoint::whole_slice(tensor.shape);
    values.emplace_back(whole.elements() * checkpoint::element_size(tensor.dtype));
    reader.read(tensor.name, tensor.dtype, tensor.shape, whole, values.back());
    shards.push_back({tensor.name, tensor.dtype, tensor.shape, whole, values.back()});
  }
  ASSERT_LT(shards.size(), reader.manifest().tensors.size());
  const std::filesystem::path folder = folder_->path() / "parameters";
  checkpoint::ShardWriter(folder, 1, 0).write(shards);
  const std::filesystem::path parameters = checkpoint::publish(folder, 1, 1, {});

  spec::TrainSpec one = spec();
  spec::derive_data(one.strategy, one.model, 1);
  EXPECT_EQ(evaluate_command(one, parameters, 5, {}).loss, evaluate_command(one, checkpoint(), 5, {}).loss);
  const TextModel text_model(one, parameters, platform::Device::select("cpu"));
  EXPECT_TRUE(text_model.parameters().kept_gradients().is_meta()) << "gradients take memory";
  const Generation generation{.tokens = 5, .sampling = {.temperature = 0}};
  EXPECT_EQ(text_of(write(text_model, tokens_of("Humpty"), generation)), " sat ");
}

}  // namespace
}  // namespace ridgeline::train
