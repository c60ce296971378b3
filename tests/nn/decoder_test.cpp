// A text that grows token by token has the logits that the whole of it has.
#include "nn/decoder.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "nn/small_model.h"

namespace ridgeline::nn {
namespace {

class DecoderTest : public testing::TestWithParam<std::tuple<std::string, at::ScalarType>> {};

TEST_P(DecoderTest, EqualsTheStage) {
  const auto [family, compute] = GetParam();
  spec::ModelSpec model = small_family(family);
  model.dropout = model.attention_dropout = 0.5;  // must not act
  const NamedTensors whole = whole_values(model);
  OneRank rank(model, whole, spec::Recompute::none, compute);
  MicroBatch batch = random_batch(model, 1);
  batch.training = false;
  const at::Tensor expected = rank.small.stage().logits({}, batch);
  const std::span<const int64_t> text(batch.tokens.data_ptr<int64_t>(), static_cast<size_t>(model.sequence));
  const double bound = compute == at::kFloat ? 1e-5 : 3e-2;

  Decoder decoder(rank.small.context(), rank.small.parameters());
  EXPECT_EQ(decoder.room(), model.sequence);
  for (const size_t prompt : {1, 5, 12}) {
    decoder.clear();
    at::Tensor logits = decoder.append(text.first(prompt));
    EXPECT_LT(relative_error(logits, expected[static_cast<int64_t>(prompt) - 1]), bound) << "prompt of " << prompt;
    for (size_t length = prompt + 1; length <= text.size(); ++length) {
      logits = decoder.append(text.subspan(length - 1, 1));
      EXPECT_EQ(decoder.length(), static_cast<int64_t>(length));
      EXPECT_LT(relative_error(logits, expected[static_cast<int64_t>(length) - 1]), bound) << "token " << length;
    }
  }
  EXPECT_THROW(decoder.append(text.first(1)), InternalError) << "the window is full";
}

INSTANTIATE_TEST_SUITE_P(Cases, DecoderTest,
                         testing::Combine(testing::ValuesIn(spec::family_names()), testing::Values(at::kFloat, at::kBFloat16)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param), c10::toString(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace ridgeline::nn
