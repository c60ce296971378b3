// Frequencies against those of transformers 5.24 (modeling_rope_utils.ROPE_INIT_FUNCTIONS), heads of 128 channels.
#include "spec/rotary.h"

#include <gtest/gtest.h>

namespace ridgeline::spec {
namespace {

constexpr size_t kPairs[] = {0, 7, 20, 25, 31, 35, 40, 63};

void expect_frequencies(const RotarySpec& rotary, const std::vector<double>& expected) {
  const std::vector<double> frequencies = rotary_frequencies(rotary, 128);
  ASSERT_EQ(frequencies.size(), 64u);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(frequencies[kPairs[i]] / expected[i], 1, 1e-6) << kPairs[i];
}

TEST(Rotary, WithoutScaling) {
  expect_frequencies({.base = 500'000}, {1, 0.238053814, 0.0165604409, 0.00594073068, 0.00173604675, 0.000764496974,
                                         0.000274248188, 2.4551407e-06});
  EXPECT_EQ(rotary_attention_factor({}), 1.0);
}

TEST(Rotary, Linear) {
  expect_frequencies({.base = 500'000, .scaling = RotaryScaling::linear, .factor = 4},
                     {0.25, 0.0595134534, 0.00414011022, 0.00148518267, 0.000434011687, 0.000191124243, 6.85620471e-05,
                      6.13785176e-07});
}

TEST(Rotary, Llama3) {
  expect_frequencies(
      {.base = 500'000, .scaling = RotaryScaling::llama3, .factor = 8, .original_sequence = 8192},
      {1, 0.238053814, 0.0165604409, 0.00594073068, 0.00085675146, 9.55621217e-05, 3.42810235e-05, 3.06892588e-07});
}

TEST(Rotary, Yarn) {
  RotarySpec rotary{.base = 1e6, .scaling = RotaryScaling::yarn, .factor = 4, .original_sequence = 32768};
  expect_frequencies(rotary, {1, 0.220673397, 0.0133352149, 0.0041317381, 0.000802959781, 0.000246258394,
                              4.44569851e-05, 3.10234441e-07});
  EXPECT_NEAR(rotary_attention_factor(rotary), 1.138629436111989, 1e-12);
  rotary = {.base = 1e6, .scaling = RotaryScaling::yarn, .factor = 16, .original_sequence = 256,
            .beta_fast = 16, .beta_slow = 2, .attention_factor = 1.25};
  expect_frequencies(rotary, {1, 0.158609003, 0.000833450933, 0.000283223984, 7.75586159e-05, 3.27061935e-05,
                              1.11142463e-05, 7.75586102e-08});
  EXPECT_EQ(rotary_attention_factor(rotary), 1.25);
}

}  // namespace
}  // namespace ridgeline::spec
