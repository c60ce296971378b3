#include "core/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <optional>

#include "core/error.h"
#include "core/message_of.h"
#include "core/temporary_folder.h"

namespace ridgeline {
namespace {

using testing::HasSubstr;

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, IsTheFile) {
  const TemporaryFolder folder;
  write_file(folder.path("a"), "some bytes");
  write_file(folder.path("empty"), "");
  MappedFile file(folder.path("a"));
  EXPECT_EQ(text_of(file), "some bytes");
  const MappedFile moved = std::move(file);
  EXPECT_EQ(text_of(moved), "some bytes");
  EXPECT_TRUE(MappedFile(folder.path("empty")).bytes().empty());
}

TEST(MappedFile, SaysWhyItCannotBe) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<InputError>([&] { MappedFile(folder.path("none")); }), HasSubstr("none: cannot be opened"));
  EXPECT_THAT(message_of<InputError>([&] { MappedFile(folder.path("")); }), HasSubstr("is not a regular file"));
  EXPECT_THAT(message_of<InputError>([&] { MappedFile("/dev/zero"); }), HasSubstr("is not a regular file"));
}

int sum(const MappedFile& file) {
  int total = 0;
  for (const std::byte byte : file.bytes()) total += std::to_integer<int>(byte);
  return total;
}

// The process that reads on ends with a message and not by a signal; which mapping it was is known even after others
// came and went.
TEST(MappedFileDeathTest, CutShortWhileItIsReadIsNamed) {
  const TemporaryFolder folder;
  const std::string large(1 << 20, 'x');
  write_file(folder.path("other"), large);
  write_file(folder.path("cut"), large);
  EXPECT_EXIT(
      {
        std::optional<MappedFile> other(folder.path("other"));
        MappedFile first(folder.path("cut"));
        const MappedFile file = std::move(first);
        const MappedFile again(folder.path("other"));
        other.reset();
        std::filesystem::resize_file(folder.path("other"), 100);
        std::filesystem::resize_file(folder.path("cut"), 100);
        std::fprintf(stderr, "sum %d\n", sum(file));
      },
      testing::ExitedWithCode(1), "ridgeline: .*/cut: cannot be read any more: it was cut short");
}

TEST(MappedFileDeathTest, OtherFaultsStaySignals) {
  const TemporaryFolder folder;
  write_file(folder.path("a"), "a");
  EXPECT_EXIT(
      {
        const MappedFile file(folder.path("a"));
        ::raise(SIGBUS);
        ::raise(SIGBUS);  // raised and not a repeated access: the first one gives the signal back to its default
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace ridgeline
