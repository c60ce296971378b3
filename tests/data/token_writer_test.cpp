#include "data/token_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/error.h"
#include "core/file_size_limit.h"
#include "core/temporary_folder.h"

namespace ridgeline::data {
namespace {

using testing::HasSubstr;

class TokenWriterTest : public testing::Test {
 protected:
  std::string prefix() const { return folder_.path("corpus"); }
  void write(const std::vector<std::vector<int64_t>>& documents, TokenType type) {
    TokenWriter writer(prefix(), type);
    for (const auto& document : documents) {
      writer.add(std::span<const int64_t>(document));
      writer.end_document();
    }
    writer.finish();
  }
  TemporaryFolder folder_;
};

TEST_F(TokenWriterTest, WhatIsWrittenIsRead) {
  for (auto type :
       {TokenType::uint8, TokenType::int8, TokenType::int16, TokenType::int32, TokenType::int64, TokenType::uint16}) {
    const auto largest = largest_token(type);
    write({{1, 2, 3}, {}, {largest}, {0, 5}}, type);
    const TokenFile file(prefix());
    EXPECT_EQ(file.type(), type);
    EXPECT_EQ(file.documents(), 4);
    EXPECT_EQ(file.document(1).size(), 0);
    std::vector<int64_t> all(static_cast<size_t>(file.tokens()));
    file.read(0, all);
    EXPECT_THAT(all, testing::ElementsAre(1, 2, 3, largest, 0, 5)) << to_string(type);
  }
}

TEST_F(TokenWriterTest, WritesTheDocumentedBytes) {
  write({{1, 258}, {3}}, TokenType::uint16);
  const std::string index(
      "MMIDIDX\0\0"
      "\1\0\0\0\0\0\0\0"
      "\10"
      "\2\0\0\0\0\0\0\0"
      "\3\0\0\0\0\0\0\0"
      "\2\0\0\0\1\0\0\0"
      "\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"
      "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0",
      9 + 8 + 1 + 8 + 8 + 8 + 16 + 24);
  EXPECT_EQ(read_file(prefix() + ".idx"), index);
  EXPECT_EQ(read_file(prefix() + ".bin"), std::string("\1\0\2\1\3\0", 6));
}

TEST_F(TokenWriterTest, StreamsDocumentsInPieces) {
  TokenWriter writer(prefix(), TokenType::int32);
  std::vector<int64_t> piece(300'000);  // several times what is buffered
  std::iota(piece.begin(), piece.end(), 0);
  for (int i = 0; i < 5; ++i) writer.add(piece);
  writer.end_document();
  writer.finish();
  const TokenFile file(prefix());
  EXPECT_EQ(file.documents(), 1);
  ASSERT_EQ(file.tokens(), 1'500'000);
  std::vector<int64_t> all(1'500'000);
  file.read(0, all);
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<int64_t>(i % piece.size()));
}

TEST_F(TokenWriterTest, LeavesNothingWithoutFinish) {
  {
    TokenWriter writer(prefix(), TokenType::uint16);
    writer.add((std::vector<int64_t>{1, 2}));
    writer.end_document();
  }
  EXPECT_TRUE(folder_.is_empty());
}

TEST_F(TokenWriterTest, AnUnfinishedWriterLeavesTheOldPair) {
  write({{1, 2, 3}}, TokenType::uint16);
  {
    TokenWriter writer(prefix(), TokenType::int64);
    writer.add((std::vector<int64_t>{9}));
  }
  EXPECT_EQ(TokenFile(prefix()).tokens(), 3);
  write({{4}}, TokenType::int64);
  EXPECT_EQ(TokenFile(prefix()).tokens(), 1);
}

TEST_F(TokenWriterTest, AFullDiskIsAFailureAndLeavesTheOldPair) {
  write({{1, 2, 3}}, TokenType::uint16);
  const std::vector<int64_t> many(100'000, 7);
  try {
    const FileSizeLimit limit(4096);
    write({many, many, many, many, many, many}, TokenType::uint16);
    FAIL() << "no error";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("corpus.bin.tmp: cannot be written after 4096 bytes"));
    EXPECT_EQ(failure.exit_code(), 1);
  }
  EXPECT_EQ(TokenFile(prefix()).tokens(), 3);
  EXPECT_FALSE(std::filesystem::exists(prefix() + ".bin.tmp"));
}

TEST_F(TokenWriterTest, ADiskThatFillsAtTheIndexLeavesTheOldPair) {
  write({{1, 2, 3}}, TokenType::uint16);
  const std::vector<std::vector<int64_t>> short_documents(1000, {1});
  {
    const FileSizeLimit limit(4096);  // 2,000 bytes of tokens fit, 20,000 of index do not
    EXPECT_THAT([&] { write(short_documents, TokenType::uint16); },
                testing::ThrowsMessage<Failure>(HasSubstr("corpus.idx.tmp: cannot be written")));
  }
  EXPECT_EQ(TokenFile(prefix()).tokens(), 3);
}

TEST_F(TokenWriterTest, RefusesIdsThatDoNotFit) {
  TokenWriter writer(prefix(), TokenType::uint16);
  writer.add((std::vector<int64_t>{1, 2}));
  EXPECT_THAT(
      [&] {
        writer.add((std::vector<int64_t>{3, 65536}));
      },
      testing::ThrowsMessage<InputError>(HasSubstr("token 3 of document 0 is 65536; expected 0 to 65535")));
  EXPECT_THROW(writer.add(std::vector<int64_t>{-1}), InputError);
}

}  // namespace
}  // namespace ridgeline::data
