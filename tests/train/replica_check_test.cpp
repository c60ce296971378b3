// A copy that drifts is found on whatever axis it is one, and named with its ranks.
#include "train/replica_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "core/error.h"
#include "train/small_run.h"

namespace ridgeline::train {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

struct Layout {
  int64_t tensor = 1, pipeline = 1, zero = 0, shard_group = 0, ranks = 1;
};

class ReplicaCheck : public testing::Test {
 protected:
  void SetUp() override { write_tokens(data(), 101, 20000); }
  std::string data() const { return (folder_.path() / "tokens").string(); }

  // What ranks say after two good steps, and one bit of `parameter` turned on `rank`.
  std::vector<std::string> faults(const Layout& layout, int64_t rank, const std::string& parameter) {
    spec::TrainSpec spec = small_spec(data());
    spec.strategy.tensor = layout.tensor;
    spec.strategy.pipeline = layout.pipeline;
    spec.strategy.zero_stage = layout.zero;
    spec.strategy.shard_group = layout.shard_group;
    std::mutex mutex;
    std::vector<std::string> messages;
    with_trainers(spec, layout.ranks, [&](Trainer& trainer, const mesh::Mesh& mesh) {
      trainer.step(0);
      trainer.step(1);
      EXPECT_NO_THROW(trainer.check_replicas(2));
      mesh.world().barrier().wait();
      if (mesh.rank() == rank) turn_bit(trainer.parameters(), parameter);
      try {
        trainer.check_replicas(3);
      } catch (const Failure& failure) {
        const std::lock_guard lock(mutex);
        messages.push_back(failure.what());
      }
      mesh.world().barrier().wait();
    });
    return messages;
  }

  // Of the last element that the rank keeps.
  static void turn_bit(const nn::FlatParameters& parameters, const std::string& name) {
    for (const spec::FlatEntry& entry : parameters.layout().entries) {
      if (parameters.declared(entry).name != name) continue;
      const spec::Range kept = parameters.kept_of(entry);
      ASSERT_GT(kept.size(), 0) << name;
      const at::Tensor values = parameters.values(parameters.layout().buckets[entry.bucket], kept);
      static_cast<int32_t*>(values.data_ptr())[kept.size() - 1] ^= 1;
      return;
    }
    ADD_FAILURE() << "no " << name << " here";
  }

  TemporaryFolder folder_;
};

TEST_F(ReplicaCheck, NamesParameterAndRanksOfTheDataAxis) {
  const auto messages = faults({.ranks = 4}, 2, "layers.1.mlp.up.weight");
  EXPECT_THAT(messages, SizeIs(4));
  EXPECT_THAT(messages, Each(HasSubstr("after step 3: copies of parameters that must be equal differ: "
                                       "layers.1.mlp.up.weight (rank 2 against ranks 0, 1, 3)")));
}

TEST_F(ReplicaCheck, FindsWhatLiesReplicatedOnTheTensorAxis) {
  const auto messages = faults({.tensor = 4, .ranks = 4}, 3, "layers.4.attention_norm.weight");
  EXPECT_THAT(messages, SizeIs(4));
  EXPECT_THAT(messages, Each(HasSubstr("layers.4.attention_norm.weight (rank 3 against ranks 0, 1, 2)")));
  EXPECT_THAT(faults({.tensor = 4, .ranks = 4}, 3, "layers.4.mlp.up.weight"), SizeIs(0)) << "shards are no copies";
}

TEST_F(ReplicaCheck, FindsTiedEmbeddingsOfTwoStages) {
  const auto messages = faults({.pipeline = 2, .ranks = 2}, 1, "embedding.token.weight");
  EXPECT_THAT(messages, SizeIs(2));
  EXPECT_THAT(messages, Each(HasSubstr("embedding.token.weight (rank 0 against rank 1)")));
}

TEST_F(ReplicaCheck, ComparesShardsWithTheirReplicas) {
  const auto messages = faults({.zero = 3, .shard_group = 2, .ranks = 4}, 2, "layers.0.attention.qkv.weight");
  EXPECT_THAT(messages, SizeIs(2)) << "the other shard is good";
  EXPECT_THAT(messages, Each(HasSubstr("layers.0.attention.qkv.weight (rank 0 against rank 2)")));
  EXPECT_THAT(faults({.zero = 3, .ranks = 4}, 2, "layers.0.mlp.up.weight"), SizeIs(0)) << "shards without copies";
}

TEST_F(ReplicaCheck, AgreesInAProductOfAxes) {
  // Each fault is seen by those who hold a copy, and by nobody else: rank 5 is stage 1, data 0, tensor 1.
  const auto messages = faults({.tensor = 2, .pipeline = 2, .zero = 1, .ranks = 8}, 5, "final_norm.weight");
  EXPECT_THAT(messages, SizeIs(3));  // 5, its copy 7 on the data axis, its copy 4 on the tensor axis
  EXPECT_THAT(messages, Each(HasSubstr("final_norm.weight")));
}

}  // namespace
}  // namespace ridgeline::train
