#include "data/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/temporary_folder.h"
#include "data/token_writer.h"

namespace ridgeline::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class SamplesTest : public testing::Test {
 protected:
  // A corpus in which token i is i, in documents of 7 tokens.
  std::string corpus(int64_t tokens, const std::string& name = "corpus") {
    TokenWriter writer(folder_.path(name), TokenType::int32);
    for (int64_t begin = 0; begin < tokens; begin += 7) {
      std::vector<int64_t> document(static_cast<size_t>(std::min<int64_t>(7, tokens - begin)));
      std::iota(document.begin(), document.end(), begin);
      writer.add(std::span<const int64_t>(document));
      writer.end_document();
    }
    writer.finish();
    return folder_.path(name);
  }
  SampleSource source(int64_t tokens, int64_t sequence, double fraction, uint64_t seed = 1) {
    spec::DataSpec data;
    data.path = corpus(tokens);
    data.validation_fraction = fraction;
    return SampleSource(data, sequence, 1'000'000, seed);
  }
  TemporaryFolder folder_;
};

TEST_F(SamplesTest, WindowsTileTheTrainingPart) {
  const auto samples = source(1000, 16, 0.1);
  ASSERT_EQ(samples.training_samples(), 56);  // (900 - 1) / 16
  ASSERT_EQ(samples.validation_samples(), 6);

  std::vector<int64_t> tokens(16), targets(16);
  std::set<int64_t> firsts;
  for (int64_t number = 0; number < 56; ++number) {
    samples.training_sample(number, tokens, targets);
    for (size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(tokens[i], tokens[0] + static_cast<int64_t>(i));
      EXPECT_EQ(targets[i], tokens[i] + 1);
    }
    EXPECT_EQ(tokens[0] % 16, 0);
    EXPECT_LT(targets[15], 900);
    firsts.insert(tokens[0]);
  }
  EXPECT_EQ(firsts.size(), 56u);  // each window once an epoch
}

TEST_F(SamplesTest, ValidationIsTheHeldOutEndInOrder) {
  const auto samples = source(1000, 16, 0.1);
  std::vector<int64_t> tokens(16), targets(16);
  for (int64_t i = 0; i < samples.validation_samples(); ++i) {
    samples.validation_sample(i, tokens, targets);
    EXPECT_EQ(tokens[0], 900 + 16 * i);
    EXPECT_EQ(targets[15], 900 + 16 * (i + 1));
  }
  EXPECT_THROW(samples.validation_sample(samples.validation_samples(), tokens, targets), InternalError);
}

TEST_F(SamplesTest, PositionsBeginAnewWithEachDocument) {
  const auto samples = source(1000, 16, 0.1);
  EXPECT_FALSE(samples.separates_documents());
  std::vector<int64_t> tokens(16), targets(16), positions(16);
  const auto check = [&] {
    for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(positions[i], std::min(i, tokens[i] % 7)) << tokens[i];
  };
  for (int64_t number = 0; number < 60; ++number) {
    samples.training_sample(number, tokens, targets);
    samples.training_positions(number, positions);
    check();
  }
  for (int64_t i = 0; i < samples.validation_samples(); ++i) {
    samples.validation_sample(i, tokens, targets);
    samples.validation_positions(i, positions);
    check();
  }
}

TEST_F(SamplesTest, EpochsAndSeedsHaveOrdersOfTheirOwn) {
  const auto samples = source(2000, 8, 0.0);
  const auto again = source(2000, 8, 0.0);
  const auto other = source(2000, 8, 0.0, 2);
  const auto n = samples.training_samples();
  ASSERT_EQ(n, 249);
  int same_epoch = 0, same_seed = 0;
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_EQ(samples.training_window(i), again.training_window(i));
    same_epoch += samples.training_window(i) == samples.training_window(n + i);
    same_seed += samples.training_window(i) == other.training_window(i);
  }
  EXPECT_LT(same_epoch, 10);
  EXPECT_LT(same_seed, 10);
  std::set<int64_t> second;
  for (int64_t i = n; i < 2 * n; ++i) second.insert(samples.training_window(i));
  EXPECT_EQ(second.size(), static_cast<size_t>(n));
  EXPECT_EQ(samples.epoch(n - 1), 0);
  EXPECT_EQ(samples.epoch(n), 1);
}

TEST_F(SamplesTest, TheSmallestCorpusIsOneWindow) {
  EXPECT_EQ(source(17, 16, 0.0).training_samples(), 1);
  EXPECT_THAT([&] { source(16, 16, 0.0); },
              testing::ThrowsMessage<InputError>(
                  AllOf(HasSubstr("16 tokens"), HasSubstr("takes 17"), HasSubstr("Expected 17 tokens or more"))));
}

// What the error says is needed is enough, for many fractions.
TEST_F(SamplesTest, TheCountThatTheErrorAsksForSuffices) {
  for (double fraction : {0.0, 0.01, 0.05, 0.1, 0.3, 0.5, 0.75, 0.9}) {
    std::string message;
    try {
      source(10, 16, fraction);
    } catch (const InputError& error) {
      message = error.what();
    }
    const auto at = message.find("Expected ");
    ASSERT_NE(at, std::string::npos) << fraction;
    const auto needed = std::stoll(message.substr(at + 9));
    EXPECT_GE(source(needed, 16, fraction).training_samples(), 1) << fraction;
  }
}

TEST_F(SamplesTest, RefusesAFractionOutOfRange) {
  for (double fraction : {-0.1, 1.0, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT([&] { source(100, 4, fraction); },
                testing::ThrowsMessage<InputError>(HasSubstr("data.validation_fraction = ")));
  }
}

TEST_F(SamplesTest, RequiresWhatEvaluationAsksFor) {
  const auto samples = source(1000, 16, 0.1);
  samples.require_validation(6);
  EXPECT_THAT([&] { samples.require_validation(7); },
              testing::ThrowsMessage<InputError>(AllOf(HasSubstr("evaluation.samples = 7"), HasSubstr("holds out 100"),
                                                       HasSubstr("expected 113 tokens or more"))));
}

TEST_F(SamplesTest, ValidationCanHaveAFileOfItsOwn) {
  spec::DataSpec data;
  data.path = corpus(100);
  data.validation_path = corpus(50, "held-out");
  data.validation_fraction = 0.5;  // not used
  const SampleSource samples(data, 8, 1000, 1);
  EXPECT_EQ(samples.training_samples(), 12);  // of all 100 tokens
  EXPECT_EQ(samples.validation_samples(), 6);
  std::vector<int64_t> tokens(8), targets(8);
  samples.validation_sample(5, tokens, targets);
  EXPECT_EQ(targets[7], 48);
  EXPECT_THAT([&] { samples.require_validation(7); }, testing::ThrowsMessage<InputError>(HasSubstr("held-out has 50")));
}

TEST_F(SamplesTest, ATokenOutsideTheVocabularyIsNamed) {
  spec::DataSpec data;
  data.path = corpus(33);
  data.validation_fraction = 0.0;
  std::vector<int64_t> tokens(16), targets(16);
  const auto read_all = [&](int64_t vocabulary) {
    const SampleSource samples(data, 16, vocabulary, 1);
    for (int64_t i = 0; i < 2; ++i) samples.training_sample(i, tokens, targets);
  };
  read_all(33);
  // Token 32 is only ever a target.
  EXPECT_THAT([&] { read_all(32); }, testing::ThrowsMessage<InputError>(HasSubstr("token 4 of document 4 is 32")));
}

// Pains of others: ranks that share samples or leave some out. Every layout must see the same samples in a step, each
// once.
TEST(GlobalSample, EveryLayoutSeesTheSameSamplesOnce) {
  constexpr int64_t kGlobalBatch = 48;
  int layouts = 0;
  for (int64_t data_size : {1, 2, 3, 4, 6, 8, 12, 16, 24, 48}) {
    for (int64_t micro_batch : {1, 2, 3, 4, 6, 8, 12, 16, 24, 48}) {
      if (kGlobalBatch % (data_size * micro_batch) != 0) continue;
      ++layouts;
      for (int64_t step : {0, 1, 1000}) {
        std::vector<int64_t> numbers;
        for (int64_t rank = 0; rank < data_size; ++rank) {
          for (int64_t index = 0; index < kGlobalBatch / (data_size * micro_batch); ++index) {
            for (int64_t i = 0; i < micro_batch; ++i) {
              numbers.push_back(global_sample(step, kGlobalBatch, index, rank, data_size, micro_batch, i));
            }
          }
        }
        std::sort(numbers.begin(), numbers.end());
        std::vector<int64_t> expected(kGlobalBatch);
        std::iota(expected.begin(), expected.end(), step * kGlobalBatch);
        ASSERT_EQ(numbers, expected) << "data " << data_size << ", micro_batch " << micro_batch;
      }
    }
  }
  EXPECT_GT(layouts, 30);
}

}  // namespace
}  // namespace ridgeline::data
