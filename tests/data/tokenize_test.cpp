#include "data/tokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "data/document_splitter.h"
#include "core/temporary_folder.h"

namespace ridgeline::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TokenizeTest : public testing::Test {
 protected:
  std::string input(const std::string& name, const std::string& text) {
    write_file(folder_.path(name), text);
    return folder_.path(name);
  }
  std::string packed(const std::string& name, const std::string& text) {
    const auto path = folder_.path(name);
    const auto file = ::gzopen(path.c_str(), "wb");
    EXPECT_EQ(::gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
    EXPECT_EQ(::gzclose(file), Z_OK);
    return path;
  }
  TokenizeResult tokenize(std::vector<std::string> inputs, DocumentSplit split = DocumentSplit::file) {
    TokenizeOptions options;
    options.inputs = std::move(inputs);
    options.output = folder_.path("corpus");
    options.documents = split;
    options.overwrite = true;
    return tokenize_bytes(options);
  }
  // The documents of the output as text, without their end tokens.
  std::vector<std::string> documents() {
    const TokenFile file(folder_.path("corpus"));
    file.check_vocabulary(kByteVocabulary);
    std::vector<std::string> texts;
    for (int64_t i = 0; i < file.documents(); ++i) {
      const auto range = file.document(i);
      std::vector<int64_t> tokens(static_cast<size_t>(range.size()));
      file.read(range.begin, tokens);
      EXPECT_EQ(tokens.back(), kEndOfDocument);
      tokens.pop_back();
      texts.emplace_back(tokens.begin(), tokens.end());
    }
    return texts;
  }
  TemporaryFolder folder_;
};

TEST_F(TokenizeTest, AFileIsADocumentByteForByte) {
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
  const auto result = tokenize({input("a", every_byte), input("empty", ""), input("b", "two\r\n\n lines \n")});
  EXPECT_THAT(documents(), ElementsAre(every_byte, "two\r\n\n lines \n"));
  EXPECT_EQ(result.documents, 2);
  EXPECT_EQ(result.text_bytes, 256 + 14);
  EXPECT_EQ(result.tokens, 256 + 14 + 2);
  EXPECT_EQ(result.vocabulary, 257);
  EXPECT_EQ(TokenFile(folder_.path("corpus")).type(), TokenType::uint16);
}

TEST_F(TokenizeTest, BlankLinesEndDocuments) {
  const auto path = input("a", "\n \none  \n\ttwo \n\n\t\r\nthree\r\n\r\n  four\n five");
  tokenize({path, path}, DocumentSplit::paragraph);
  EXPECT_THAT(documents(),
              ElementsAre("one  \n\ttwo", "three", "  four\n five", "one  \n\ttwo", "three", "  four\n five"));
}

TEST_F(TokenizeTest, LinesAreDocuments) {
  tokenize({input("a", "one\n\n two  words \r\n\t\nthree"), input("b", "four\n")}, DocumentSplit::line);
  EXPECT_THAT(documents(), ElementsAre("one", " two  words", "three", "four"));
}

// Wherever the stream is cut into pieces, the documents are the same.
TEST_F(TokenizeTest, PiecesOfTheStreamDoNotMatter) {
  const std::string text = "\n \none  \n\ttwo \n\n\t\r\nthree\r\n\r\n  four\n five \n\n";
  for (auto split : {DocumentSplit::file, DocumentSplit::paragraph, DocumentSplit::line}) {
    tokenize({input("a", text)}, split);
    const auto expected = documents();
    for (size_t piece = 1; piece <= 8; ++piece) {
      TokenWriter writer(folder_.path("corpus"), TokenType::uint16);
      DocumentSplitter splitter(writer, split);
      for (size_t at = 0; at < text.size(); at += piece) splitter.add("a", std::string_view(text).substr(at, piece));
      splitter.end_file();
      writer.finish();
      ASSERT_EQ(documents(), expected) << "pieces of " << piece;
    }
  }
}

TEST_F(TokenizeTest, UnpacksGzip) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "line " + std::to_string(i) + "\n";
  tokenize({packed("a.gz", text), input("b.gz", "plain in spite of its name")});
  EXPECT_THAT(documents(), ElementsAre(text, "plain in spite of its name"));
}

TEST_F(TokenizeTest, DamagedGzipIsRefusedAndNothingIsLeft) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919);
  const auto whole = read_file(packed("a.gz", text));
  for (size_t size : {whole.size() - 1, whole.size() - 8, whole.size() / 2, size_t{20}}) {
    EXPECT_THAT([&] { tokenize({input("cut.gz", whole.substr(0, size))}); },
                testing::ThrowsMessage<InputError>(HasSubstr("cut.gz: near byte ")))
        << size;
  }
  auto damaged = whole;
  damaged[damaged.size() / 2] ^= 0x55;
  EXPECT_THAT([&] { tokenize({input("bad.gz", damaged)}); },
              testing::ThrowsMessage<InputError>(HasSubstr("bad.gz: near byte ")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("corpus.idx")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("corpus.bin")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("corpus.bin.tmp")));
}

TEST_F(TokenizeTest, RefusesInputsWithoutText) {
  EXPECT_THAT([&] { tokenize({}); }, testing::ThrowsMessage<InputError>(HasSubstr("no input file")));
  EXPECT_THAT([&] { tokenize({input("a", " \n\n")}, DocumentSplit::line); },
              testing::ThrowsMessage<InputError>(HasSubstr("no text in 1 input file(s)")));
  EXPECT_THAT(
      [&] {
        tokenize({input("a", "text"), folder_.path("missing")});
      },
      testing::ThrowsMessage<InputError>(HasSubstr("missing: cannot be opened")));
  std::filesystem::create_directory(folder_.path("folder"));
  EXPECT_THAT([&] { tokenize({folder_.path("folder")}); },
              testing::ThrowsMessage<InputError>(HasSubstr("folder: is not a regular file")));
  EXPECT_THAT([&] { tokenize({input("b", "x" + std::string(17 << 20, ' ') + "y")}, DocumentSplit::line); },
              testing::ThrowsMessage<InputError>(HasSubstr("blanks in a row")));
}

TEST_F(TokenizeTest, OverwritesOnlyWhenAsked) {
  tokenize({input("a", "first")});
  TokenizeOptions options;
  options.inputs = {input("b", "second")};
  options.output = folder_.path("corpus");
  EXPECT_THAT([&] { tokenize_bytes(options); }, testing::ThrowsMessage<InputError>(HasSubstr("corpus.idx: exists")));
  EXPECT_THAT(documents(), ElementsAre("first"));
  options.overwrite = true;
  tokenize_bytes(options);
  EXPECT_THAT(documents(), ElementsAre("second"));
}

}  // namespace
}  // namespace ridgeline::data
