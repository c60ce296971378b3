#include <vector>

#include "nn/kernel_reference.h"
#include "nn/kernels/dropout.h"

namespace ridgeline::nn {
namespace {

using DropoutTest = KernelTest;
INSTANTIATE_TEST_SUITE_P(Kernels, DropoutTest, every_target_and_format(), target_and_format);

const std::vector<int64_t> kSamples = {3, (int64_t{1} << 33) + 5, 4};
const uint64_t kKey = dropout_key(77, 12, 5);

at::Tensor dropped(const at::Tensor& x, const DropoutRate& rate, const DropoutPlace& place) {
  const at::Tensor out = at::empty_like(x);
  apply_dropout(x, rate, place, out);
  return out;
}

TEST_P(DropoutTest, FollowsTheDefinition) {
  const DropoutRate rate(0.3);
  const DropoutPlace place{kKey, 1000, kSamples, 70};
  const at::Tensor x = normal({4, 3, 150});
  const at::Tensor out = dropped(x, rate, place);
  at::Tensor mask = at::zeros({4, 3, 150}, at::kFloat);
  auto keep = mask.accessor<float, 3>();
  for (int64_t s = 0; s < 4; ++s)
    for (int64_t b = 0; b < 3; ++b)
      for (int64_t c = 0; c < 150; ++c)
        keep[s][b][c] = dropout_keeps(rate, kKey, kSamples[b], 1000 + s, 70 + c) ? 1 : 0;
  EXPECT_TRUE(same_bits(out, x.to(at::kFloat).mul(rate.scale).mul(mask).to(dtype())));
  EXPECT_NEAR(mask.mean().item<double>(), 0.7, 0.06);
}

TEST_P(DropoutTest, PlainVersionGivesTheSameBits) {
  for (const double probability : {0.0, 0.1, 0.5, 0.999}) {
    const DropoutRate rate(probability);
    for (const int64_t first_channel : {0, 5, 64, 200}) {
      const DropoutPlace place{kKey, 7, kSamples, first_channel};
      const at::Tensor x = normal({5, 3, 131});
      const at::Tensor residual = normal({5, 3, 131});
      const at::Tensor by_plain = at::empty_like(x), fused = at::empty_like(x);
      plain::apply_dropout(x, {}, rate, place, by_plain);
      EXPECT_TRUE(same_bits(dropped(x, rate, place), by_plain)) << probability << " " << first_channel;
      plain::apply_dropout(x, residual, rate, place, by_plain);
      apply_dropout_and_add(x, residual, rate, place, fused);
      EXPECT_TRUE(same_bits(fused, by_plain)) << "with residual " << probability << " " << first_channel;
    }
  }
}

TEST_P(DropoutTest, SlicesOfEveryDimensionAreSlicesOfTheWhole) {
  const DropoutRate rate(0.25);
  const at::Tensor x = normal({12, 3, 200});
  const at::Tensor whole = dropped(x, rate, {kKey, 0, kSamples, 0});
  for (const auto& [begin, length] : std::vector<std::pair<int64_t, int64_t>>{{0, 5}, {5, 7}, {11, 1}}) {
    EXPECT_TRUE(same_bits(dropped(x.narrow(0, begin, length).contiguous(), rate, {kKey, begin, kSamples, 0}),
                          whole.narrow(0, begin, length)));
  }
  for (int64_t b = 0; b < 3; ++b) {
    EXPECT_TRUE(same_bits(dropped(x.narrow(1, b, 1).contiguous(), rate, {kKey, 0, {&kSamples[b], 1}, 0}),
                          whole.narrow(1, b, 1)));
  }
  for (const auto& [begin, length] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 100}, {100, 100}, {63, 2}, {199, 1}}) {
    EXPECT_TRUE(same_bits(dropped(x.narrow(2, begin, length).contiguous(), rate, {kKey, 0, kSamples, begin}),
                          whole.narrow(2, begin, length)));
  }
}

TEST_P(DropoutTest, WorksInPlaceAndHidesWhatItDrops) {
  const DropoutRate rate(0.5);
  const DropoutPlace place{kKey, 0, kSamples, 0};
  const at::Tensor x = normal({6, 3, 77});
  const at::Tensor expected = dropped(x, rate, place);
  apply_dropout(x, rate, place, x);
  EXPECT_TRUE(same_bits(x, expected));
  const at::Tensor infinite = at::full_like(x, INFINITY);
  apply_dropout(infinite, rate, place, infinite);
  EXPECT_FALSE(infinite.isnan().any().item<bool>());
}

TEST(DropoutChecks, RefuseWhatDoesNotFit) {
  const at::Tensor x = at::zeros({2, 3, 4});
  EXPECT_THROW(apply_dropout(x, DropoutRate(0.1), {kKey, 0, {kSamples.data(), 2}, 0}, x), InternalError);
  EXPECT_THROW(apply_dropout(x, DropoutRate(0.1), {kKey, -1, kSamples, 0}, x), InternalError);
  EXPECT_THROW(DropoutRate(1.0), InternalError);
}

}  // namespace
}  // namespace ridgeline::nn
