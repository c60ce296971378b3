#include "checkpoint/slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>

#include "checkpoint/coverage.h"
#include "core/error.h"

namespace ridgeline::checkpoint {
namespace {

using spec::Box;
using Index = std::vector<int64_t>;

class Draw {
 public:
  explicit Draw(uint64_t seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }

  Index shape() {
    Index shape(between(0, 4));
    for (int64_t& size : shape) size = between(1, 6);
    return shape;
  }
  Slice slice(const Index& shape) {
    Box box;
    for (int64_t size : shape) {
      // Half of the dimensions are whole and a few are empty, so that two slices often meet, and meet in long runs.
      const int64_t kind = between(0, 20);
      const int64_t begin = kind <= 10 ? 0 : between(0, size - 1);
      box.offset.push_back(begin);
      box.extent.push_back(kind <= 10 ? size : kind == 11 ? 0 : between(1, size - begin));
    }
    Slice slice = box_slice(box);
    if (between(0, 2) != 0) {
      slice.range.begin = between(0, slice.range.end / 2);
      slice.range.end = between(slice.range.begin, slice.range.end);
    }
    return slice;
  }

 private:
  std::mt19937_64 engine_;
};

// The global indices of a slice's elements in order, one at a time: what everything else is compared with.
std::vector<Index> enumerate(const Slice& slice) {
  std::vector<Index> indices;
  for (int64_t number = slice.range.begin; number < slice.range.end; ++number) {
    Index index(slice.box.extent.size());
    int64_t rest = number;
    for (size_t dim = index.size(); dim-- > 0;) {
      index[dim] = slice.box.offset[dim] + rest % slice.box.extent[dim];
      rest /= slice.box.extent[dim];
    }
    indices.push_back(index);
  }
  return indices;
}

int32_t value_of(const Index& index) {
  int32_t value = 1;
  for (int64_t each : index) value = value * 7 + static_cast<int32_t>(each);
  return value;
}

TEST(Slice, BoxesAreTheElementsInOrder) {
  Draw draw(1);
  for (int round = 0; round < 3000; ++round) {
    const Index shape = draw.shape();
    const Slice slice = draw.slice(shape);
    ASSERT_EQ(find_fault(slice, shape), std::nullopt);
    const std::vector<Box> boxes = boxes_of(slice);
    if (!shape.empty()) {
      EXPECT_LE(boxes.size(), 2 * shape.size() - 1) << to_string(slice);
    }
    std::vector<Index> indices;
    for (const Box& box : boxes) {
      const std::vector<Index> part = enumerate(box_slice(box));
      ASSERT_FALSE(part.empty());
      indices.insert(indices.end(), part.begin(), part.end());
    }
    ASSERT_EQ(indices, enumerate(slice)) << to_string(slice);
  }
}

TEST(Slice, CopiesTheCommonElementsAndNothingElse) {
  Draw draw(2);
  int64_t copies = 0;
  for (int round = 0; round < 10000; ++round) {
    const Index shape = draw.shape();
    const Slice from = draw.slice(shape);
    const Slice to = draw.slice(shape);
    std::vector<int32_t> source;
    for (const Index& index : enumerate(from)) source.push_back(value_of(index));
    const std::vector<Index> held = enumerate(from);
    const std::set<Index> available(held.begin(), held.end());
    std::vector<int32_t> expected;
    int64_t common = 0;
    for (const Index& index : enumerate(to)) {
      const bool there = available.contains(index);
      expected.push_back(there ? value_of(index) : -1);
      common += there;
    }
    std::vector<int32_t> destination(expected.size(), -1);
    const int64_t copied = copy_slice(from, std::as_bytes(std::span(source)), to,
                                      std::as_writable_bytes(std::span(destination)), sizeof(int32_t));
    ASSERT_EQ(copied, common) << to_string(from) << " to " << to_string(to);
    ASSERT_EQ(destination, expected) << to_string(from) << " to " << to_string(to);
    copies += copied;
  }
  EXPECT_GT(copies, 10000);  // the draws do meet
}

TEST(Slice, FindsGapsAndOverlaps) {
  Draw draw(3);
  int covered = 0;
  int disjoint = 0;
  for (int round = 0; round < 4000; ++round) {
    const Index shape = draw.shape();
    const Slice wanted = draw.slice(shape);
    std::vector<Slice> pieces(draw.between(0, 4));
    std::multiset<Index> held;
    for (Slice& piece : pieces) {
      piece = draw.slice(shape);
      for (const Index& index : enumerate(piece)) held.insert(index);
    }
    const std::vector<Index> all = enumerate(wanted);
    const bool complete = std::all_of(all.begin(), all.end(), [&](const Index& index) { return held.contains(index); });
    const auto gap = first_gap(wanted, pieces);
    ASSERT_EQ(gap.has_value(), !complete) << to_string(wanted);
    if (gap) {
      for (const Index& index : enumerate(box_slice(*gap))) {
        EXPECT_FALSE(held.contains(index));
        EXPECT_TRUE(std::count(all.begin(), all.end(), index) == 1);
      }
    }
    const bool unique = std::set<Index>(held.begin(), held.end()).size() == held.size();
    ASSERT_EQ(first_overlap(pieces).has_value(), !unique);
    covered += complete && !all.empty();
    disjoint += unique && pieces.size() > 1;
  }
  EXPECT_GT(covered, 100);
  EXPECT_GT(disjoint, 100);
}

TEST(Slice, ShardsOfAFlatBufferCoverTheirTensor) {
  // Two tensor parallel halves by columns, each cut in five at arbitrary elements, as ZeRO does.
  const Index shape = {9, 8};
  std::vector<Slice> pieces;
  for (int64_t half = 0; half < 2; ++half) {
    for (int64_t part = 0; part < 5; ++part) {
      const spec::Range range = {36 * part / 5, 36 * (part + 1) / 5};
      pieces.push_back({{{0, 4 * half}, {9, 4}}, range});
    }
  }
  EXPECT_EQ(first_gap(whole_slice(shape), pieces), std::nullopt);
  EXPECT_EQ(first_overlap(pieces), std::nullopt);
  pieces[7].range.begin += 1;
  const auto gap = first_gap(whole_slice(shape), pieces);
  ASSERT_TRUE(gap);
  EXPECT_EQ(*gap, (Box{{3, 6}, {1, 1}}));  // element 14 of the second half
}

TEST(Slice, RefusesWhatLeavesTheTensor) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(find_fault({{{0}, {2}}, {0, 2}}, {2, 2}));
  EXPECT_TRUE(find_fault({{{0, 1}, {2, 2}}, {0, 4}}, {2, 2}));
  EXPECT_TRUE(find_fault({{{0, -1}, {2, 2}}, {0, 4}}, {2, 2}));
  EXPECT_TRUE(find_fault({{{0, 0}, {2, -1}}, {0, 0}}, {2, 2}));
  EXPECT_TRUE(find_fault({{{0, huge}, {2, huge}}, {0, 4}}, {2, 2}));
  EXPECT_TRUE(find_fault({{{0, 0}, {2, 2}}, {0, 5}}, {2, 2}));
  EXPECT_TRUE(find_fault({{{0, 0}, {2, 2}}, {3, 2}}, {2, 2}));
  EXPECT_TRUE(find_fault({{{0, 0}, {huge, huge}}, {0, 1}}, {huge, huge}));
  EXPECT_FALSE(find_fault({{{2, 0}, {0, 2}}, {0, 0}}, {2, 2}));
  std::vector<std::byte> short_bytes(3);
  EXPECT_THROW(copy_slice(whole_slice({4}), short_bytes, whole_slice({4}), short_bytes, 1), InternalError);
}

}  // namespace
}  // namespace ridgeline::checkpoint
