// Layout changes nothing but speed: losses and gradient norms of every layout over 20 steps against those of one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "spec/families.h"
#include "train/layouts.h"

namespace ridgeline::train {
namespace {

// What one rank gives for the same model and precision. Its micro-batch is the default, its buckets are whole.
const History& one_rank(const Layout& layout) {
  static std::map<std::string, History> known;
  std::string switches = layout.family() + " ";
  for (const char* word : {"dropout", "documents", "bf16", "fp16", "deep", "no_capacity", "seq24"}) {
    if (layout.has(word)) switches += std::string(word) + " ";
  }
  auto found = known.find(switches);
  if (found == known.end()) {
    found = known.emplace(switches, train_layout(spec_of({1, 1, 1, switches}, token_file()), 1)).first;
  }
  return found->second;
}

struct Bounds {
  double loss, gradient_norm;
};

// fp32: rounding of sums in another order. bf16 has 8 bits, fp16 11: partial sums of the tensor axis are rounded to
// them.
Bounds bounds_of(const Layout& layout) {
  if (layout.has("bf16")) return {2e-3, 3e-2};
  if (layout.has("fp16")) return {5e-4, 1e-2};
  return {1e-5, 1e-5};
}

// The largest relative errors of losses and gradient norms.
Bounds expect_equal_to_one_rank(const Layout& layout) {
  const History& expected = one_rank(layout);
  mesh::MeshOptions options = mesh::rank_options();
  if (layout.has("gloo")) options.back_end = mesh::BackEndKind::gloo;
  const History actual = train_layout(spec_of(layout, token_file()), layout.ranks(), options);
  const Bounds bounds = bounds_of(layout);
  EXPECT_EQ(actual.loss.size(), expected.loss.size());
  if (actual.loss.size() != expected.loss.size()) return {};
  double worst_loss = 0, worst_norm = 0;
  for (size_t step = 0; step < expected.loss.size(); ++step) {
    const double loss_error = std::abs(actual.loss[step] / expected.loss[step] - 1);
    const double norm_error = std::abs(actual.gradient_norm[step] / expected.gradient_norm[step] - 1);
    EXPECT_LT(loss_error, bounds.loss) << "step " << step;
    EXPECT_LT(norm_error, bounds.gradient_norm) << "step " << step;
    EXPECT_NEAR(actual.auxiliary_loss[step], expected.auxiliary_loss[step], bounds.loss) << "step " << step;
    worst_loss = std::max(worst_loss, loss_error);
    worst_norm = std::max(worst_norm, norm_error);
  }
  EXPECT_NEAR(actual.held_out / expected.held_out, 1.0, bounds.loss);
  return {worst_loss, worst_norm};
}

class ParityTest : public testing::TestWithParam<Layout> {};

TEST_P(ParityTest, EqualsOneRank) {
  const Bounds worst = expect_equal_to_one_rank(GetParam());
  RecordProperty("worst_loss_error", std::to_string(worst.loss));
  RecordProperty("worst_norm_error", std::to_string(worst.gradient_norm));
}

std::string draw_family(std::mt19937_64& random) {
  const std::vector<std::string>& names = spec::expert_family_names();
  return names[random() % names.size()];
}

bool has_hybrid(const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), "hybrid") != words.end();
}

// A legal product of all axes and switches on up to 8 ranks.
Layout random_layout(std::mt19937_64& random) {
  const auto draw = [&](std::vector<int64_t> from) { return from[random() % from.size()]; };
  const auto coin = [&] { return random() % 2 == 0; };
  Layout layout{draw({1, 2, 4}), draw({1, 2, 4}), 1, ""};
  while (layout.tensor * layout.pipeline > 8) layout.pipeline /= 2;
  int64_t context = draw({1, 1, 2, 4});
  while (layout.tensor * layout.pipeline * context > 8) context /= 2;
  layout.data = draw({1, 2, 4, 8});
  while (layout.tensor * layout.pipeline * context * layout.data > 8) layout.data /= 2;
  std::vector<std::string> words;
  const std::vector<std::string> zero = {"", "zero", "zero2", "zero3"};
  words.push_back(zero[random() % 4]);
  if (!words[0].empty() && layout.data * context >= 2 && coin()) words.push_back("hybrid");
  if (context > 1) {
    const bool heads = 8 / layout.tensor % context == 0 && coin();
    words.push_back(fmt::format("{}{}", heads ? "heads" : "ring", context));
  }
  if (layout.tensor > 1 && coin()) words.push_back("sp");
  if (layout.pipeline > 1 && coin()) words.push_back("gpipe");
  if (layout.pipeline > 1 && coin()) words.push_back("uneven");
  if (layout.data <= 4 && coin()) words.push_back("mb2");
  const std::vector<std::string> recompute = {"", "selective", "full"};
  words.push_back(recompute[random() % 3]);
  for (const char* word : {"untied", "dropout", "tiny_buckets", "offload"}) {
    if (coin()) words.push_back(word);
  }
  if (random() % 3 == 0) {
    words.push_back(draw_family(random));
    const bool whole = layout.tensor > 1 && coin();
    if (whole) words.push_back("whole");
    if (context > 1) words.push_back("no_capacity");
    const int64_t group = has_hybrid(words) ? 2 : layout.data * context, width = group * (whole ? layout.tensor : 1);
    if (width % 4 == 0 && coin()) {
      words.push_back("ep4");
    } else if (width % 2 == 0) {
      words.push_back("ep2");
    }
  }
  for (const std::string& word : words)
    layout.switches += word.empty() ? "" : (layout.switches.empty() ? "" : " ") + word;
  return layout;
}

// RIDGELINE_PARITY_SEED repeats a run, RIDGELINE_PARITY_LAYOUTS asks for more of them.
TEST(RandomParity, ProductsOfAllAxesEqualOneRank) {
  const char* wish = std::getenv("RIDGELINE_PARITY_SEED");
  const char* count = std::getenv("RIDGELINE_PARITY_LAYOUTS");
  const uint64_t seed = wish != nullptr ? std::stoull(wish) : std::random_device()();
  std::mt19937_64 random(seed);
  std::printf("RIDGELINE_PARITY_SEED=%llu\n", static_cast<unsigned long long>(seed));
  for (int index = 0; index < (count != nullptr ? std::stoi(count) : 6); ++index) {
    const Layout layout = random_layout(random);
    SCOPED_TRACE(fmt::format("layout {} of seed {}: {}", index, seed, layout.name()));
    expect_equal_to_one_rank(layout);
  }
}

TEST(ParityReference, LearnsSomething) {
  const History& history = one_rank({1, 1, 1, ""});
  EXPECT_NEAR(history.loss.front(), std::log(101.0), 0.05);
  EXPECT_LT(history.loss.back(), history.loss.front() - 0.1);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, ParityTest,
    testing::Values(
        // One rank: what recomputation, micro-batches and buckets change.
        Layout{1, 1, 1, "selective"}, Layout{1, 1, 1, "full"}, Layout{1, 1, 1, "mb2 tiny_buckets"},
        Layout{1, 1, 1, "full dropout"},
        // Two ranks: every axis alone.
        Layout{2, 1, 1, ""}, Layout{2, 1, 1, "sp"}, Layout{2, 1, 1, "sp selective dropout"},
        Layout{2, 1, 1, "sp full untied"}, Layout{2, 1, 1, "mb2 dropout"}, Layout{1, 2, 1, ""},
        Layout{1, 2, 1, "gpipe"}, Layout{1, 2, 1, "uneven untied"}, Layout{1, 2, 1, "full dropout"},
        Layout{1, 2, 1, "gpipe selective mb2"}, Layout{1, 1, 2, ""}, Layout{1, 1, 2, "zero tiny_buckets"},
        Layout{1, 1, 2, "tiny_buckets mb2"}, Layout{1, 1, 2, "zero dropout"},
        // Four ranks: products of two, and long axes.
        Layout{4, 1, 1, "sp"}, Layout{4, 1, 1, "untied"}, Layout{1, 4, 1, ""}, Layout{1, 4, 1, "gpipe uneven"},
        Layout{1, 1, 4, "zero"}, Layout{1, 1, 4, "mb2"}, Layout{2, 2, 1, "sp"}, Layout{2, 2, 1, "gpipe full dropout"},
        Layout{2, 1, 2, "sp zero tiny_buckets"}, Layout{2, 1, 2, "selective"}, Layout{1, 2, 2, "zero"},
        Layout{1, 2, 2, "gpipe untied tiny_buckets"},
        // Eight ranks: products of three.
        Layout{2, 2, 2, ""}, Layout{2, 2, 2, "sp zero tiny_buckets"}, Layout{2, 2, 2, "sp zero selective dropout"},
        Layout{2, 2, 2, "gpipe full untied zero"}, Layout{4, 2, 1, "sp uneven"}, Layout{8, 1, 1, "sp"},
        Layout{1, 4, 2, "zero full"}, Layout{1, 1, 8, "zero"}, Layout{4, 1, 2, "zero sp"}, Layout{2, 4, 1, "gpipe sp"},
        Layout{1, 2, 4, "zero mb2 tiny_buckets"}),
    [](const auto& info) { return info.param.name(); });

// Sharded gradients and parameters, alone and in products with every other axis.
INSTANTIATE_TEST_SUITE_P(Sharded, ParityTest,
                         testing::Values(Layout{1, 1, 1, "zero3"}, Layout{1, 1, 2, "zero2"}, Layout{1, 1, 2, "zero3"},
                                         Layout{1, 1, 2, "zero3 untied"}, Layout{1, 1, 2, "zero2 mb2 dropout"},
                                         Layout{1, 1, 4, "zero2 full"}, Layout{1, 1, 4, "zero3 selective dropout"},
                                         Layout{1, 1, 8, "zero3"}, Layout{1, 2, 2, "zero2 gpipe"},
                                         Layout{1, 2, 2, "zero3"}, Layout{1, 2, 2, "zero3 gpipe untied"},
                                         Layout{1, 4, 2, "zero3 full dropout"}, Layout{1, 4, 2, "zero2 uneven untied"},
                                         Layout{2, 1, 2, "zero2 sp"}, Layout{2, 1, 2, "zero3 sp untied"},
                                         Layout{4, 1, 2, "zero3"}, Layout{2, 2, 2, "zero2 sp selective"},
                                         Layout{2, 2, 2, "zero3 sp dropout"},
                                         Layout{2, 2, 2, "zero3 sp full gpipe untied"}, Layout{1, 1, 4, "zero hybrid"},
                                         Layout{1, 1, 4, "zero2 hybrid"}, Layout{1, 1, 4, "zero3 hybrid"},
                                         Layout{1, 1, 8, "zero3 hybrid untied"}, Layout{1, 2, 4, "zero3 hybrid gpipe"},
                                         Layout{2, 1, 4, "zero3 hybrid sp full"}, Layout{2, 1, 4, "zero hybrid sp"},
                                         Layout{1, 2, 4, "zero2 hybrid"}, Layout{1, 1, 1, "offload"},
                                         Layout{1, 1, 2, "zero3 offload"},
                                         Layout{2, 2, 2, "zero sp offload tiny_buckets"}),
                         [](const auto& info) { return info.param.name(); });

// Backward in two halves, and a V whose first stage holds both ends of the model.
INSTANTIATE_TEST_SUITE_P(
    ZeroBubble, ParityTest,
    testing::Values(Layout{1, 1, 1, "zb"}, Layout{1, 2, 1, "zb"}, Layout{1, 2, 1, "zb full dropout mb2"},
                    Layout{2, 2, 1, "zb sp"}, Layout{1, 4, 1, "zb untied uneven"},
                    Layout{1, 2, 2, "zb zero tiny_buckets"}, Layout{2, 2, 2, "zb sp zero selective dropout"},
                    Layout{1, 2, 1, "zbv"}, Layout{1, 2, 1, "zbv untied"}, Layout{1, 2, 1, "zbv uneven full dropout"},
                    Layout{2, 2, 1, "zbv sp"}, Layout{1, 4, 1, "zbv deep"}, Layout{1, 2, 2, "zbv zero tiny_buckets"},
                    Layout{2, 2, 2, "zbv sp zero selective"}, Layout{1, 3, 2, "zbv deep zero"},
                    Layout{1, 4, 1, "zbv deep gloo"}, Layout{1, 2, 1, "zb gloo"}, Layout{1, 2, 2, "zbv bf16 zero"},
                    Layout{1, 2, 1, "zb bf16"}, Layout{1, 2, 2, "zbv zero3"}, Layout{1, 2, 2, "zb zero3 untied"},
                    Layout{2, 2, 2, "zb zero2 sp full"}, Layout{1, 4, 2, "zbv deep zero2"}),
    [](const auto& info) { return info.param.name(); });
// Every family on the tensor axis with and without sequence parallelism, on stages, replicas and shards, and on all.
std::vector<Layout> family_layouts() {
  std::vector<Layout> layouts;
  for (const std::string& family : spec::family_names()) {
    if (family.starts_with("gpt")) continue;
    layouts.push_back({1, 1, 1, family + " selective mb2"});
    layouts.push_back({2, 1, 1, family + " dropout"});
    layouts.push_back({4, 1, 1, family + " sp selective"});
    layouts.push_back({1, 2, 2, family + " full zero"});
    layouts.push_back({2, 2, 2, family + " sp zero tiny_buckets"});
  }
  for (const std::string family : {"gpt", "mistral"}) {
    layouts.push_back({2, 1, 1, family + " sp documents mb2"});
    layouts.push_back({1, 2, 2, family + " zero documents"});
    layouts.push_back({2, 2, 1, family + " dropout documents"});
  }
  return layouts;
}

INSTANTIATE_TEST_SUITE_P(Families, ParityTest, testing::ValuesIn(family_layouts()),
                         [](const auto& info) { return info.param.name(); });

// Ranks that share sequences, by a ring and by sharing out heads, alone and with every other axis.
INSTANTIATE_TEST_SUITE_P(
    Context, ParityTest,
    testing::Values(Layout{1, 1, 1, "ring2"}, Layout{1, 1, 1, "ring3 seq24"}, Layout{1, 1, 1, "ring4 mb2 dropout"},
                    Layout{1, 1, 1, "ring8 untied"}, Layout{1, 1, 1, "ring2 gloo"}, Layout{1, 1, 1, "ring4 selective"},
                    Layout{1, 1, 1, "heads2"}, Layout{1, 1, 1, "heads4 mb2 dropout"}, Layout{1, 1, 1, "heads8 full"},
                    Layout{1, 1, 1, "heads2 gloo selective"}, Layout{2, 1, 1, "ring2 sp"},
                    Layout{2, 1, 1, "ring4 full untied"}, Layout{2, 1, 1, "heads4 sp dropout"},
                    Layout{4, 1, 1, "heads2 sp selective"}, Layout{1, 2, 1, "ring2 full dropout mb2"},
                    Layout{1, 2, 1, "heads2 gpipe untied"}, Layout{1, 2, 1, "ring2 vp2"},
                    Layout{1, 2, 1, "heads4 vp2 full"}, Layout{1, 2, 1, "ring4 zb"}, Layout{1, 2, 1, "heads2 zb mb2"},
                    Layout{1, 2, 1, "ring2 zbv"}, Layout{1, 2, 1, "heads2 zbv selective"}, Layout{1, 1, 2, "ring2 mb2"},
                    Layout{1, 1, 2, "ring2 zero tiny_buckets"}, Layout{1, 1, 1, "ring4 zero2"},
                    Layout{1, 1, 2, "ring4 zero3 untied"}, Layout{1, 1, 2, "heads2 zero3 dropout"},
                    Layout{1, 1, 2, "heads4 zero hybrid"}, Layout{1, 1, 4, "ring2 zero3 hybrid"},
                    Layout{1, 1, 1, "ring2 zero offload"}, Layout{2, 2, 1, "ring2 sp"},
                    Layout{2, 1, 2, "ring2 sp zero2 selective"}, Layout{1, 2, 2, "heads2 zero3 gpipe"},
                    Layout{2, 2, 1, "heads2 zb sp zero full"}, Layout{1, 1, 2, "ring2 documents mb2"},
                    Layout{2, 1, 1, "ring4 documents dropout"}, Layout{1, 2, 1, "heads4 documents"},
                    Layout{1, 1, 1, "ring2 bf16"}, Layout{1, 2, 2, "ring2 bf16 zero"}, Layout{1, 1, 2, "heads4 bf16"},
                    Layout{1, 1, 1, "ring2 fp16"}),
    [](const auto& info) { return info.param.name(); });

std::vector<Layout> context_family_layouts() {
  std::vector<Layout> layouts;
  for (const std::string& family : spec::family_names()) {
    if (family.starts_with("gpt")) continue;
    layouts.push_back({1, 1, 2, family + " ring2 selective mb2 zero"});
    layouts.push_back({2, 1, 1, family + " ring4 sp dropout"});
    layouts.push_back({1, 2, 1, family + " heads4 full"});
    layouts.push_back({2, 1, 1, family + " heads2 sp selective"});
  }
  layouts.push_back({1, 1, 2, "mistral ring4 documents"});
  layouts.push_back({2, 1, 1, "mistral heads2 documents sp"});
  return layouts;
}

INSTANTIATE_TEST_SUITE_P(ContextFamilies, ParityTest, testing::ValuesIn(context_family_layouts()),
                         [](const auto& info) { return info.param.name(); });

// Experts over ranks, cut over the tensor axis or whole, with every other axis. The losses that routers add, the biases
// that even experts out and what capacity drops are in all of them but those of mixtral.
INSTANTIATE_TEST_SUITE_P(
    Experts, ParityTest,
    testing::Values(
        Layout{1, 1, 1, "mixtral selective mb2"}, Layout{1, 1, 1, "shared_experts full mb2"},
        Layout{2, 1, 1, "qwen3_moe"}, Layout{2, 1, 1, "shared_experts sp"}, Layout{2, 1, 1, "qwen3_moe whole"},
        Layout{2, 1, 1, "shared_experts whole ep2"}, Layout{2, 1, 1, "shared_experts whole sp ep2 mb2 dropout"},
        Layout{4, 1, 1, "mixtral whole ep2 sp selective"}, Layout{4, 1, 1, "shared_experts whole ep4"},
        Layout{1, 1, 2, "mixtral ep2"}, Layout{1, 1, 2, "shared_experts ep2 zero tiny_buckets"},
        Layout{1, 1, 4, "qwen3_moe ep4"}, Layout{1, 1, 4, "shared_experts ep2 zero"},
        Layout{1, 1, 4, "mixtral ep2 zero2"}, Layout{1, 1, 4, "shared_experts ep2 zero3 full"},
        Layout{1, 1, 4, "qwen3_moe ep4 zero3"}, Layout{1, 1, 8, "shared_experts ep2 zero3 hybrid"},
        Layout{1, 1, 4, "mixtral ep2 offload zero"}, Layout{2, 1, 2, "shared_experts ep2 sp zero"},
        Layout{2, 1, 2, "qwen3_moe ep4 whole zero3"}, Layout{2, 1, 2, "shared_experts ep2 whole sp zero2"},
        Layout{2, 1, 4, "shared_experts ep4 whole hybrid zero"}, Layout{1, 2, 2, "shared_experts ep2 gpipe"},
        Layout{1, 2, 2, "qwen3_moe ep2 zb zero3"}, Layout{1, 2, 2, "shared_experts ep2 zbv full"},
        Layout{1, 2, 2, "mixtral ep2 vp2 zero2"}, Layout{2, 2, 2, "shared_experts ep2 sp zero selective"},
        Layout{2, 2, 2, "qwen3_moe ep4 whole sp zero3 zb"}, Layout{1, 1, 4, "shared_experts ep4 gloo"},
        Layout{2, 1, 2, "mixtral ep2 whole gloo zero3"}, Layout{1, 1, 1, "qwen3_moe ring2 ep2"},
        Layout{1, 1, 2, "shared_experts no_capacity ring2 ep4 zero3"},
        Layout{2, 1, 1, "shared_experts no_capacity heads2 ep4 whole sp mb2"}),
    [](const auto& info) { return info.param.name(); });

// Several chunks of the model on a rank.
INSTANTIATE_TEST_SUITE_P(Interleaved, ParityTest,
                         testing::Values(Layout{1, 2, 1, "vp2"}, Layout{1, 2, 1, "vp2 uneven untied mb2"},
                                         Layout{2, 2, 1, "vp2 sp full dropout"},
                                         Layout{1, 2, 2, "vp2 zero tiny_buckets"}, Layout{1, 4, 1, "vp2 deep"},
                                         Layout{2, 2, 2, "vp2 sp zero selective"},
                                         Layout{1, 4, 2, "vp2 deep full untied"}, Layout{1, 2, 1, "vp2 gloo"},
                                         Layout{1, 4, 1, "vp2 deep gloo"}, Layout{1, 2, 2, "vp2 bf16 zero"},
                                         Layout{1, 2, 2, "vp2 zero3"}, Layout{2, 2, 2, "vp2 zero2 sp selective"}),
                         [](const auto& info) { return info.param.name(); });

INSTANTIATE_TEST_SUITE_P(OnGloo, ParityTest,
                         testing::Values(Layout{2, 1, 2, "sp zero tiny_buckets gloo"}, Layout{1, 2, 1, "gpipe gloo"},
                                         Layout{2, 2, 1, "bf16 sp gloo"}, Layout{1, 2, 2, "zero3 gloo"},
                                         Layout{1, 1, 4, "zero2 hybrid gloo"}),
                         [](const auto& info) { return info.param.name(); });

INSTANTIATE_TEST_SUITE_P(LowPrecision, ParityTest,
                         testing::Values(Layout{1, 1, 2, "bf16 zero"}, Layout{2, 1, 1, "bf16 sp"}, Layout{1, 2, 1, "bf16 full"},
                                         Layout{2, 2, 2, "bf16 sp zero"}, Layout{2, 1, 2, "fp16 zero"},
                                         Layout{1, 2, 2, "fp16 selective"}, Layout{2, 2, 1, "fp16 sp gpipe"},
                                         Layout{2, 2, 2, "bf16 zero3 sp"}, Layout{1, 1, 4, "bf16 zero2 hybrid"},
                                         Layout{1, 2, 2, "fp16 zero3 full"}, Layout{1, 1, 2, "bf16 zero2 offload"},
                                         Layout{2, 1, 2, "bf16 sp zero qwen3"}, Layout{1, 2, 1, "fp16 llama3"}),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace ridgeline::train
