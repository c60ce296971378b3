#include "checkpoint/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "checkpoint/faulty_file_system.h"
#include "checkpoint/sample_checkpoint.h"
#include "checkpoint/scratch_folder.h"
#include "checkpoint/step_folder.h"
#include "core/error.h"

namespace ridgeline::checkpoint {
namespace {

using testing::HasSubstr;

TEST(Reader, AnyLayoutReadsAnyLayout) {
  ScratchFolder folder;
  int64_t step = 0;
  for (int64_t writers : {1, 2, 3, 4, 6}) {
    const Path path = save_sample(folder.path(), ++step, writers, 5);
    for (int64_t readers : {1, 2, 3, 4, 5, 8}) expect_sample(path, step, 5, readers);
  }
}

TEST(Reader, ReadsMoreFilesThanItKeepsOpen) {
  ScratchFolder folder;
  FaultyFileSystem sound;  // flushes nothing: quick
  expect_sample(save_sample(folder.path(), 1, 150, 3, sound), 1, 3, 2);
}

TEST(Reader, SaysWhatIsWrong) {
  ScratchFolder folder;
  CheckpointReader reader(save_sample(folder.path(), 1, 2, 5));
  std::vector<std::byte> bytes(7 * 6 * 4);
  auto read = [&](const char* name, DType dtype, std::vector<int64_t> shape) {
    return message_of<InputError>([&] { reader.read(name, dtype, shape, whole_slice(shape), bytes); });
  };
  EXPECT_THAT(read("layers.0.weigth", DType::F32, {7, 6}), HasSubstr("layers.0.weight"));
  EXPECT_THAT(read("layers.0.weight", DType::F32, {7, 5}), HasSubstr("has the shape [7, 6], expected [7, 5]"));
  EXPECT_THAT(read("layers.0.weight", DType::BF16, {7, 6}), HasSubstr("\"layers.0.weight\" is F32, expected BF16"));
  EXPECT_THROW(reader.read("layers.0.weight", DType::F32, {7, 6}, whole_slice({7, 5}), bytes), InternalError);
  bytes.resize(4);
  EXPECT_THROW(reader.read("layers.0.weight", DType::F32, {7, 6}, whole_slice({7, 6}), bytes), InternalError);
  EXPECT_THROW(CheckpointReader(folder.path() / "none"), InputError);
}

TEST(Reader, NoticesFilesThatDisagreeWithTheManifest) {
  ScratchFolder folder;
  const Path path = save_sample(folder.path(), 1, 2, 5);
  std::vector<std::byte> bytes(7 * 6 * 4);
  auto read = [&] { CheckpointReader(path).read("layers.0.weight", DType::F32, {7, 6}, whole_slice({7, 6}), bytes); };
  std::string content = slurp(path / rank_file_name(1));
  const size_t name = content.find("layers.0.weight");
  ASSERT_NE(name, std::string::npos);
  content[name] = 'L';
  spill(path / rank_file_name(1), content);
  EXPECT_THAT(message_of<InputError>(read), HasSubstr("no \"layers.0.weight\""));
  spill(path / rank_file_name(1), content + "x");
  EXPECT_THAT(message_of<InputError>(read), HasSubstr("the manifest expects"));
}

TEST(Reader, VerifyFindsOneFlippedBit) {
  ScratchFolder folder;
  const Path path = save_sample(folder.path(), 1, 3, 5);
  uint64_t last = 0;
  uint64_t announced = 0;
  EXPECT_TRUE(CheckpointReader(path)
                  .verify([&](uint64_t done, uint64_t total) {
                    EXPECT_GE(done, last);
                    last = done;
                    announced = total;
                  })
                  .empty());
  EXPECT_EQ(last, announced);
  EXPECT_GT(last, 0u);

  std::string content = slurp(path / rank_file_name(1));
  content.back() ^= 1;
  spill(path / rank_file_name(1), content);
  EXPECT_EQ(find_damage(path), std::nullopt);  // sizes agree
  std::vector<std::string> faults = CheckpointReader(path).verify();
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(faults[0], HasSubstr("rank-00001.safetensors: checksum"));
  std::filesystem::remove(path / rank_file_name(1));
  faults = CheckpointReader(path).verify();
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(faults[0], HasSubstr("cannot be opened"));
}

TEST(Publish, InsistsOnEveryElementOnce) {
  ScratchFolder folder;
  std::vector<int32_t> values(12);
  std::iota(values.begin(), values.end(), 0);
  const auto bytes = std::as_bytes(std::span(values));
  auto save = [&](const Slice& first, const Slice& second, DType dtype = DType::I32) {
    ShardWriter(folder.path(), 4, 0).write({{"w", DType::I32, {12}, first, bytes.first(first.elements() * 4)}});
    ShardWriter(folder.path(), 4, 1).write({{"w", dtype, {12}, second, bytes.first(second.elements() * 4)}});
    publish(folder.path(), 4, 2, {});
  };
  auto part = [](int64_t begin, int64_t end) { return Slice{{{0}, {12}}, {begin, end}}; };
  EXPECT_THAT(message_of<Failure>([&] { save(part(0, 5), part(6, 12)); }),
              HasSubstr("no rank wrote [5:6] of tensor \"w\""));
  EXPECT_THAT(message_of<Failure>([&] { save(part(0, 7), part(6, 12)); }),
              HasSubstr("[6:7] of tensor \"w\" [12] was written more"));
  EXPECT_THAT(message_of<Failure>([&] { publish(folder.path(), 4, 3, {}); }), HasSubstr("rank 2 left no"));
  EXPECT_THAT(message_of<Failure>([&] { save(part(0, 6), part(6, 12), DType::F32); }),
              HasSubstr("tensor \"w\" is F32 [12] in rank 1"));
  EXPECT_EQ(newest_complete(folder.path()), std::nullopt);
  save(part(0, 6), part(6, 12));
  EXPECT_TRUE(newest_complete(folder.path()));
}

TEST(Writer, StoresSeveralPiecesOfATensor) {
  ScratchFolder folder;
  std::vector<int32_t> values(12);
  std::iota(values.begin(), values.end(), 0);
  const auto bytes = std::as_bytes(std::span(values));
  auto piece = [&](const char* name, int64_t begin, int64_t end) {
    return TensorShard{
        name, DType::I32, {12}, {{{0}, {12}}, {begin, end}}, bytes.subspan(begin * 4, (end - begin) * 4)};
  };
  ShardWriter(folder.path(), 4, 0).write({piece("w", 8, 12), piece("w#1", 0, 12), piece("w", 0, 3), piece("w", 3, 8)});
  CheckpointReader reader(publish(folder.path(), 4, 1, {}));
  for (const char* name : {"w", "w#1"}) {
    std::vector<int32_t> found(12);
    reader.read(name, DType::I32, {12}, whole_slice({12}), std::as_writable_bytes(std::span(found)));
    EXPECT_EQ(found, values) << name;
  }
}

TEST(Writer, RefusesShardsThatAreNoSlices) {
  ScratchFolder folder;
  std::vector<std::byte> bytes(16);
  ShardWriter writer(folder.path(), 1, 0);
  EXPECT_THROW(writer.write({{"w", DType::F32, {4}, whole_slice({5}), bytes}}), InternalError);
  EXPECT_THROW(writer.write({{"w", DType::F64, {4}, whole_slice({4}), bytes}}), InternalError);
  EXPECT_EQ(list_folder(folder.path()), std::vector<std::string>{});
}

}  // namespace
}  // namespace ridgeline::checkpoint
