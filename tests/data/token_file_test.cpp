#include "data/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/temporary_folder.h"

namespace ridgeline::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The bytes of an index as docs/token-files.md describes them, written out here a second time and not by the writer.
struct Index {
  std::string magic{"MMIDIDX\0\0", 9};
  uint64_t version = 1;
  uint8_t code = 8;
  std::vector<int32_t> lengths{3, 0, 2, 4};
  std::vector<int64_t> pointers{0, 6, 6, 10};
  std::vector<int64_t> documents{0, 2, 2, 3, 4};
  std::string modes;

  std::string bytes() const {
    std::string out = magic;
    append(out, version);
    append(out, code);
    append<uint64_t>(out, lengths.size());
    append<uint64_t>(out, documents.size());
    for (auto length : lengths) append(out, length);
    for (auto pointer : pointers) append(out, pointer);
    for (auto document : documents) append(out, document);
    return out + modes;
  }
};

template <typename T>
std::string tokens_as(std::vector<int64_t> values) {
  std::string out;
  for (auto value : values) append(out, static_cast<T>(value));
  return out;
}

class TokenFileTest : public testing::Test {
 protected:
  TokenFile open(const std::string& index, const std::string& bin) {
    write_file(folder_.path("corpus.idx"), index);
    write_file(folder_.path("corpus.bin"), bin);
    return TokenFile(folder_.path("corpus"));
  }
  std::string error(const std::string& index, const std::string& bin) {
    try {
      open(index, bin);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string error(const std::function<void(Index&)>& change) {
    Index index;
    change(index);
    return error(index.bytes(), bin_);
  }

  TemporaryFolder folder_;
  std::string bin_ = tokens_as<uint16_t>({10, 11, 12, 20, 21, 30, 31, 32, 65535});
};

TEST_F(TokenFileTest, ReadsTheDocumentedBytes) {
  const auto file = open(Index().bytes(), bin_);
  EXPECT_EQ(file.type(), TokenType::uint16);
  EXPECT_EQ(file.tokens(), 9);
  EXPECT_EQ(file.sequences(), 4);
  EXPECT_EQ(file.documents(), 4);
  EXPECT_EQ(file.document(0), (spec::Range{0, 3}));
  EXPECT_EQ(file.document(1), (spec::Range{3, 3}));  // no sequences
  EXPECT_EQ(file.document(2), (spec::Range{3, 5}));
  EXPECT_EQ(file.document(3), (spec::Range{5, 9}));
  std::vector<int64_t> all(9);
  file.read(0, all);
  EXPECT_THAT(all, ElementsAre(10, 11, 12, 20, 21, 30, 31, 32, 65535));
  std::vector<int64_t> some(4);
  file.read(5, some);
  EXPECT_THAT(some, ElementsAre(30, 31, 32, 65535));
  for (int64_t token = 0; token < 9; ++token) {
    const auto range = file.document(file.document_of(token));
    EXPECT_TRUE(range.begin <= token && token < range.end) << token;
  }
}

TEST_F(TokenFileTest, ReadsEveryType) {
  const std::vector<int64_t> values{0, 1, 127, 3};
  const auto check = [&]<typename T>(uint8_t code, T) {
    Index index;
    index.code = code;
    index.lengths = {1, 3};
    index.pointers = {0, sizeof(T)};
    index.documents = {0, 1, 2};
    const auto file = open(index.bytes(), tokens_as<T>(values));
    EXPECT_EQ(token_bytes(file.type()), static_cast<int64_t>(sizeof(T)));
    std::vector<int64_t> wide(4);
    file.read(0, wide);
    EXPECT_EQ(wide, values);
  };
  check(1, uint8_t{});
  check(2, int8_t{});
  check(3, int16_t{});
  check(4, int32_t{});
  check(5, int64_t{});
  check(8, uint16_t{});
}

TEST_F(TokenFileTest, AcceptsTextModesAndAnEmptyCorpus) {
  Index index;
  index.modes = std::string(4, '\0');
  EXPECT_EQ(open(index.bytes(), bin_).tokens(), 9);
  index = {};
  index.lengths = {};
  index.pointers = {};
  index.documents = {0};
  const auto file = open(index.bytes(), "");
  EXPECT_EQ(file.tokens(), 0);
  EXPECT_EQ(file.documents(), 0);
}

TEST_F(TokenFileTest, NamesFileByteFoundAndExpected) {
  EXPECT_THAT(error([](Index& index) { index.magic[0] = 'T'; }), HasSubstr("corpus.idx: byte 0: "));
  EXPECT_THAT(error([](Index& index) { index.version = 2; }), HasSubstr("byte 9: version 2; expected 1"));
  for (int code : {0, 6, 7, 9, 255}) {
    EXPECT_THAT(error([code](Index& index) { index.code = static_cast<uint8_t>(code); }),
                HasSubstr(fmt::format("byte 17: dtype code {}; expected", code)));
  }
  EXPECT_THAT(error([](Index& index) { index.lengths[1] = -1; }), HasSubstr("byte 38: sequence 1 has length -1"));
  EXPECT_THAT(error([](Index& index) { index.pointers[2] = 8; }), HasSubstr("byte 66: sequence 2 starts at byte 8 of"));
  EXPECT_THAT(error([](Index& index) { index.pointers[0] = -6; }), HasSubstr("byte 50: sequence 0 starts at byte -6"));
  EXPECT_THAT(error([](Index& index) { index.documents[0] = 1; }), HasSubstr("byte 82: the first document"));
  EXPECT_THAT(error([](Index& index) { index.documents[2] = 1; }),
              HasSubstr("byte 98: document entry 2 is sequence 1"));
  EXPECT_THAT(error([](Index& index) { index.documents[2] = 5; }), HasSubstr("expected 2 to 4"));
  EXPECT_THAT(error([](Index& index) { index.documents[4] = 3; }), HasSubstr("byte 114: the last document ends"));
  EXPECT_THAT(error([](Index& index) { index.documents = {}; }), HasSubstr("byte 26: 0 document entries"));
  EXPECT_THAT(error([](Index& index) { index.modes = std::string("\0\0\1\0", 4); }),
              HasSubstr("byte 124: sequence 2 has mode 1"));
  EXPECT_THAT(error([](Index& index) { index.modes = "abc"; }), HasSubstr("byte 122: 3 bytes follow"));
}

TEST_F(TokenFileTest, RefusesFilesThatAreNotAPair) {
  EXPECT_THAT(error(Index().bytes(), bin_.substr(1)), HasSubstr("corpus.bin: sequence 3 takes bytes 10 to 18"));
  EXPECT_THAT(error(Index().bytes(), bin_ + "x"), HasSubstr("corpus.bin: 19 bytes; expected 18 (9 tokens of uint16)"));
  EXPECT_THAT(error(Index().bytes(), ""), HasSubstr("sequence 0 takes bytes 0 to 6, and the file has 0"));
}

TEST_F(TokenFileTest, RefusesEveryTruncation) {
  const auto whole = Index().bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(error(whole.substr(0, size), bin_), HasSubstr("corpus.idx: ")) << size;
  }
}

// Counts whose products overflow 64 bits must not come out as small sizes.
TEST_F(TokenFileTest, RefusesCountsThatOverflow) {
  for (uint64_t count : {uint64_t{1} << 32, uint64_t{1} << 60, uint64_t{1} << 61, uint64_t{1} << 62, ~uint64_t{0},
                         ~uint64_t{0} / 12 + 1, ~uint64_t{0} / 8 + 1}) {
    for (size_t at : {18u, 26u}) {
      auto bytes = Index().bytes();
      std::memcpy(bytes.data() + at, &count, sizeof count);
      EXPECT_THAT(error(bytes, bin_), HasSubstr(fmt::format("byte {}: {} ", at, count)));
    }
  }
}

// Any damage of one byte of the index is refused, or leaves a file all of whose tokens can be read.
TEST_F(TokenFileTest, SurvivesAnyDamagedByte) {
  const auto whole = Index().bytes();
  int refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int change : {0x01, 0x80, 0xff}) {
      auto bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      try {
        const auto file = open(bytes, bin_);
        std::vector<int64_t> all(static_cast<size_t>(file.tokens()));
        file.read(0, all);
        for (int64_t i = 0; i < file.documents(); ++i) EXPECT_LE(file.document(i).end, file.tokens());
      } catch (const InputError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, static_cast<int>(whole.size()));
}

TEST_F(TokenFileTest, MissingFilesAreNamed) {
  EXPECT_THAT([&] { TokenFile(folder_.path("none")); },
              testing::ThrowsMessage<InputError>(HasSubstr("none.idx: cannot be opened")));
  write_file(folder_.path("half.idx"), Index().bytes());
  EXPECT_THAT([&] { TokenFile(folder_.path("half")); },
              testing::ThrowsMessage<InputError>(HasSubstr("half.bin: cannot be opened")));
  std::filesystem::create_directory(folder_.path("folder.idx"));
  EXPECT_THAT([&] { TokenFile(folder_.path("folder")); },
              testing::ThrowsMessage<InputError>(HasSubstr("not a regular file")));
}

TEST_F(TokenFileTest, NamesDocumentAndPositionOfATokenOutsideTheVocabulary) {
  const auto file = open(Index().bytes(), bin_);
  file.check_vocabulary(65536);
  file.check_vocabulary(33, {0, 8});
  EXPECT_THAT([&] { file.check_vocabulary(65535); },
              testing::ThrowsMessage<InputError>(
                  HasSubstr("corpus.bin: byte 16: token 3 of document 3 is 65535; expected 0 to 65534")));
  EXPECT_THAT([&] { file.check_vocabulary(21); },
              testing::ThrowsMessage<InputError>(HasSubstr("token 1 of document 2 is 21")));

  Index index;
  index.code = 5;
  index.lengths = {2};
  index.pointers = {0};
  index.documents = {0, 1};
  const auto wide = open(index.bytes(), tokens_as<int64_t>({7, int64_t{1} << 40}));
  EXPECT_THAT([&] { wide.check_vocabulary(100); }, testing::ThrowsMessage<InputError>(HasSubstr("is 1099511627776")));
  const auto negative = open(index.bytes(), tokens_as<int64_t>({7, -1}));
  EXPECT_THAT([&] { negative.check_vocabulary(100); }, testing::ThrowsMessage<InputError>(HasSubstr("is -1")));
}

TEST_F(TokenFileTest, ReadingOutsideIsAFaultOfTheCaller) {
  const auto file = open(Index().bytes(), bin_);
  std::vector<int64_t> out(2);
  EXPECT_THROW(file.read(8, out), InternalError);
  EXPECT_THROW(file.read(-1, out), InternalError);
  EXPECT_THROW(file.read(std::numeric_limits<int64_t>::max(), out), InternalError);
}

TEST(TokenType, FollowsMegatronsThreshold) {
  EXPECT_EQ(token_type_for(257), TokenType::uint16);
  EXPECT_EQ(token_type_for(65499), TokenType::uint16);
  EXPECT_EQ(token_type_for(65500), TokenType::int32);
}

}  // namespace
}  // namespace ridgeline::data
