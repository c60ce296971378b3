#include "core/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "core/error.h"
#include "core/message_of.h"
#include "core/temporary_folder.h"

namespace ridgeline {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& path, size_t limit = kLargestConfig) {
  return message_of<InputError>([&] { read_text_file(path, "a TOML file", limit); });
}

TEST(TextFile, IsReadWhole) {
  const TemporaryFolder folder;
  for (const size_t size : {0, 1, 65536, 200'000}) {
    std::string text(size, 'x');
    if (size > 0) text.back() = '\0';
    write_file(folder.path("a"), text);
    EXPECT_EQ(read_text_file(folder.path("a"), "text"), text);
  }
}

TEST(TextFile, MayBeAsLargeAsItsLimit) {
  const TemporaryFolder folder;
  write_file(folder.path("a"), std::string(100, 'x'));
  EXPECT_EQ(read_text_file(folder.path("a"), "text", 100).size(), 100);
  EXPECT_THAT(refusal(folder.path("a"), 99), HasSubstr("a: larger than 99 bytes; expected a TOML file"));
}

TEST(TextFile, MayBeAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  for (const size_t size : {size_t{3}, size_t{300'000}, kLargestConfig + 1}) {
    std::thread writer([&] {
      try {
        write_file(folder.path("pipe"), std::string(size, 'x'));
      } catch (const std::runtime_error&) {  // the reader went away
      }
    });
    if (size <= kLargestConfig) {
      EXPECT_EQ(read_text_file(folder.path("pipe"), "text").size(), size);
    } else {
      EXPECT_THAT(refusal(folder.path("pipe")), HasSubstr("larger than 1 MiB"));
    }
    writer.join();
  }
}

TEST(TextFile, SaysWhyItCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal(folder.path("none")),
              HasSubstr("none: cannot read: No such file or directory; expected a TOML file"));
  EXPECT_THAT(refusal(folder.path("")), HasSubstr("is a folder; expected a TOML file"));
  EXPECT_THAT(refusal("/dev/zero"), HasSubstr("/dev/zero: is not a regular file; expected a TOML file"));
}

}  // namespace
}  // namespace ridgeline
