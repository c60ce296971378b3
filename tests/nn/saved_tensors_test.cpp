// What the units keep for backward is what the cost room says that they keep: names, bytes and order, on every rank.
#include "cost/saved_tensors.h"

#include <gtest/gtest.h>

#include <set>

#include "mesh/ranks.h"
#include "nn/small_model.h"

namespace ridgeline::nn {
namespace {

using spec::Precision;
using spec::Recompute;

struct Case {
  std::string family;
  Recompute recompute;
  int64_t tensor;
  bool sequence_parallel;
  Precision precision;
};

using Kept = std::vector<std::pair<std::string, int64_t>>;  // name and bytes

Kept predicted(const spec::ModelSpec& model, const spec::Strategy& strategy, Precision precision, int64_t unit,
               int64_t rank) {
  Kept kept;
  for (const cost::SavedTensor& tensor : cost::saved_tensors(model, strategy, unit)) {
    if (!cost::is_kept(tensor, strategy.recompute)) continue;
    kept.emplace_back(tensor.name, cost::local_bytes(tensor, strategy, precision, rank));
  }
  return kept;
}

Kept visited(const SavedRecord& record) {
  Kept kept;
  record.visit([&](const char* name, const at::Tensor& tensor) {
    if (tensor.defined()) kept.emplace_back(name, static_cast<int64_t>(tensor.nbytes()));
  });
  return kept;
}

// Bytes that the records keep alive, a storage that two tensors share counted once.
int64_t bytes_alive(const std::vector<Saved>& records) {
  std::set<const void*> seen;
  int64_t bytes = 0;
  for (const Saved& record : records) {
    record->visit([&](const char*, const at::Tensor& tensor) {
      if (!tensor.defined() || !seen.insert(tensor.storage().unsafeGetStorageImpl()).second) return;
      bytes += static_cast<int64_t>(tensor.storage().nbytes());
    });
  }
  return bytes;
}

class SavedTensorsTest : public testing::TestWithParam<Case> {};

TEST_P(SavedTensorsTest, AreThoseThatTheCostRoomCounts) {
  const Case& c = GetParam();
  const spec::ModelSpec model = small_family(c.family);
  spec::Strategy strategy;
  strategy.recompute = c.recompute;
  strategy.tensor = c.tensor;
  strategy.sequence_parallel = c.sequence_parallel;
  strategy.micro_batch = 3;
  const at::ScalarType compute = c.precision == Precision::bf16 ? at::kBFloat16 : at::kFloat;
  const NamedTensors whole = whole_values(model);
  const MicroBatch batch = random_batch(model, strategy.micro_batch);
  mesh::run_ranks(c.tensor, [&](int64_t rank, std::shared_ptr<mesh::Store> store) {
    const mesh::Mesh mesh({.tensor = c.tensor}, rank, store, platform::Device::select("cpu"), mesh::rank_options());
    const int64_t units = spec::unit_count(model);
    SmallStage small(model, strategy, mesh.group(mesh::Axis::tensor), compute, whole, {0, units});
    InFlight flight{batch, {}, {}};
    small.stage().forward({}, flight);
    int64_t bytes = 0;
    for (int64_t unit = 0; unit < units; ++unit) {
      const Kept expected = predicted(model, strategy, c.precision, unit, rank);
      EXPECT_EQ(visited(*flight.saved[unit]), expected) << "unit " << unit << " on rank " << rank;
      for (const auto& [name, count] : expected) bytes += count;
    }
    EXPECT_EQ(bytes_alive(flight.saved), bytes) << "on rank " << rank << ": a view keeps more alive than it shows";
    small.stage().backward({}, flight, [](int64_t) {});
    for (const Saved& record : flight.saved) EXPECT_EQ(record, nullptr) << "a record outlives its backward";
    mesh.world().barrier().wait();
  });
}

std::vector<Case> cases() {
  std::vector<Case> list;
  std::vector<std::string> families = spec::family_names();
  families.insert(families.end(), {"mixtral", "qwen3_moe"});  // which drop nothing
  for (const std::string& family : families) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      for (const Precision precision : {Precision::fp32, Precision::bf16}) {
        list.push_back({family, recompute, 1, false, precision});
        list.push_back({family, recompute, 2, false, precision});
        list.push_back({family, recompute, 2, true, precision});
      }
    }
  }
  return list;
}

// Between the halves of a split backward.
TEST_P(SavedTensorsTest, OfDeferredWeightGradientsAreThoseThatTheCostRoomCounts) {
  const Case& c = GetParam();
  const spec::ModelSpec model = small_model();
  spec::Strategy strategy;
  strategy.recompute = c.recompute;
  strategy.tensor = c.tensor;
  strategy.sequence_parallel = c.sequence_parallel;
  strategy.micro_batch = 3;
  const at::ScalarType compute = c.precision == Precision::bf16 ? at::kBFloat16 : at::kFloat;
  const NamedTensors whole = whole_values(model);
  const MicroBatch batch = random_batch(model, strategy.micro_batch);
  mesh::run_ranks(c.tensor, [&](int64_t rank, std::shared_ptr<mesh::Store> store) {
    const mesh::Mesh mesh({.tensor = c.tensor}, rank, store, platform::Device::select("cpu"), mesh::rank_options());
    const int64_t units = spec::unit_count(model);
    SmallStage small(model, strategy, mesh.group(mesh::Axis::tensor), compute, whole, {0, units});
    InFlight flight{batch, {}, {}};
    small.stage().forward({}, flight);
    small.stage().backward_input({}, flight);
    std::set<const void*> seen;
    int64_t bytes = 0, expected = 0;
    for (int64_t unit = 0; unit < units; ++unit) {
      EXPECT_EQ(flight.saved[unit], nullptr) << "a record outlives the backward for its input";
      flight.weights[unit].visit([&](const at::Tensor& tensor) {
        if (!seen.insert(tensor.storage().unsafeGetStorageImpl()).second) return;
        bytes += static_cast<int64_t>(tensor.storage().nbytes());
      });
      for (const cost::SavedTensor& tensor : cost::deferred_tensors(model, strategy, unit)) {
        expected += cost::local_bytes(tensor, strategy, c.precision, rank);
      }
    }
    EXPECT_EQ(bytes, expected) << "on rank " << rank;
    EXPECT_GT(bytes, 0);
    small.stage().backward_weight(flight, [](int64_t) {});
    mesh.world().barrier().wait();
  });
}

INSTANTIATE_TEST_SUITE_P(Cases, SavedTensorsTest, testing::ValuesIn(cases()), [](const auto& info) {
  const Case& c = info.param;
  return fmt::format("{}_{}_tensor{}{}_{}", c.family, spec::to_string(c.recompute), c.tensor, c.sequence_parallel ? "_sp" : "",
                     c.precision == Precision::bf16 ? "bf16" : "fp32");
});

}  // namespace
}  // namespace ridgeline::nn
