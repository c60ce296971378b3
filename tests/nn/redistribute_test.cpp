// Every pair of placements, on axes of one to four ranks, against slices and sums of the global tensor.
#include "nn/redistribute.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "mesh/ranks.h"

namespace ridgeline::nn {
namespace {

using spec::Placement;

const Placement kReplicate = Placement::replicate();
const Placement kPartial = Placement::partial();
const Placement kRows = Placement::shard(0);
const Placement kColumns = Placement::shard(1);

constexpr int64_t kGlobalRows = 12, kGlobalColumns = 5;

// Whole numbers, whose sums are exact in every order.
at::Tensor global() { return at::arange(kGlobalRows * kGlobalColumns, at::kFloat).view({kGlobalRows, kGlobalColumns}); }

// What `rank` of `size` holds of global() placed so. The parts of a partial tensor differ.
at::Tensor local(const Placement& placement, int64_t size, int64_t rank) {
  if (placement.is_partial()) {
    const at::Tensor share = global() * static_cast<double>(rank + 1);
    if (rank + 1 < size) return share;
    const int64_t others = (size - 1) * size / 2;  // 1 + 2 + ... + (size - 1)
    return global() * static_cast<double>(1 - others);
  }
  const spec::Box box = spec::local_box({kGlobalRows, kGlobalColumns}, placement, size, rank);
  return global().narrow(0, box.offset[0], box.extent[0]).narrow(1, box.offset[1], box.extent[1]).contiguous();
}

void on_axis(int64_t ranks, const std::function<void(const mesh::Communicator& axis)>& function) {
  mesh::run_ranks(ranks, [&](int64_t rank, std::shared_ptr<mesh::Store> store) {
    const mesh::Mesh mesh({.tensor = ranks}, rank, store, platform::Device::select("cpu"), mesh::rank_options());
    function(mesh.group(mesh::Axis::tensor));
    mesh.world().barrier().wait();
  });
}

class RedistributeTest : public testing::TestWithParam<int64_t> {};

TEST_P(RedistributeTest, EveryPairGivesTheSlicesOfTheGlobalTensor) {
  const std::pair<Placement, Placement> pairs[] = {{kPartial, kReplicate}, {kPartial, kRows}, {kRows, kReplicate},
                                                   {kReplicate, kRows},    {kReplicate, kReplicate}, {kRows, kRows},
                                                   {kPartial, kPartial},   {kColumns, kColumns}};
  on_axis(GetParam(), [&](const mesh::Communicator& axis) {
    for (const auto& [from, to] : pairs) {
      const at::Tensor source = local(from, axis.size(), axis.rank());
      const at::Tensor result = redistribute(source, from, to, axis);
      EXPECT_TRUE(at::equal(result, local(to, axis.size(), axis.rank())))
          << to_string(from) << " -> " << to_string(to) << " on rank " << axis.rank() << " of " << axis.size();
      if (from == to || axis.size() == 1) {
        EXPECT_TRUE(result.is_same(source)) << "a copy was made for nothing";
      }
    }
  });
}

TEST_P(RedistributeTest, WorkUnderWayIsWhatWaitReturns) {
  on_axis(GetParam(), [&](const mesh::Communicator& axis) {
    const at::Tensor first = local(kPartial, axis.size(), axis.rank()), second = local(kRows, axis.size(), axis.rank());
    Redistribution sum = start_redistribute(first, kPartial, kRows, axis);
    Redistribution whole = start_redistribute(second, kRows, kReplicate, axis);
    EXPECT_TRUE(at::equal(whole.wait(), global()));
    EXPECT_TRUE(at::equal(sum.wait(), axis.size() == 1 ? global() : second));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, RedistributeTest, testing::Values(1, 2, 3, 4), testing::PrintToStringParamName());

TEST(Redistribute, WhatHasNoMeaningIsAFaultOfTheProgram) {
  on_axis(2, [](const mesh::Communicator& axis) {
    for (const auto& [from, to] : {std::pair{kReplicate, kPartial}, std::pair{kRows, kPartial}, std::pair{kRows, kColumns},
                                   std::pair{kColumns, kReplicate}, std::pair{kPartial, kColumns},
                                   std::pair{kReplicate, kColumns}}) {
      EXPECT_THROW(redistribute(local(from, 2, axis.rank()), from, to, axis), InternalError)
          << to_string(from) << " -> " << to_string(to);
    }
    EXPECT_THROW(redistribute(at::ones({3, 2}), kPartial, kRows, axis), InternalError) << "3 rows over 2 ranks";
  });
}

}  // namespace
}  // namespace ridgeline::nn
