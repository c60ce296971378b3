#include "core/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/file_size_limit.h"
#include "core/message_of.h"
#include "core/temporary_folder.h"

namespace ridgeline {
namespace {

using testing::HasSubstr;

TEST(OutputFile, ReplacesOnlyWhenItIsWhole) {
  const TemporaryFolder folder;
  const std::string path = folder.path("deep/er/file");
  {
    OutputFile file(path);
    file.write_array(std::span<const char>(std::string_view("first")));
    file.publish();
  }
  {
    OutputFile file(path);
    file.write_array(std::span<const char>(std::string(3 << 20, 'x')));
    EXPECT_EQ(file.size(), 3 << 20);
    EXPECT_EQ(read_file(path), "first");
  }
  EXPECT_EQ(read_file(path), "first");
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  write_whole_file(path, "second");
  EXPECT_EQ(read_file(path), "second");
}

TEST(OutputFile, OfAFullDiskLeavesWhatWasThere) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file");
  write_file(path, "before");
  const std::string message = message_of<Failure>([&] {
    const FileSizeLimit limit(1 << 20);
    OutputFile file(path);
    file.write_array(std::span<const char>(std::string(3 << 20, 'x')));
    file.publish();
  });
  EXPECT_THAT(message, HasSubstr("cannot be written after 1048576 bytes"));
  EXPECT_THAT(message, HasSubstr("nothing was changed"));
  EXPECT_EQ(read_file(path), "before");
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST(OutputFile, WhereNoFileCanBeSaysSo) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of<InputError>([&] { write_whole_file(folder.path("pipe"), "text"); }),
              HasSubstr("pipe: is not a regular file"));
  EXPECT_THAT(message_of<InputError>([&] { write_whole_file(folder.path(""), "text"); }),
              HasSubstr("is not a regular file"));
  write_file(folder.path("file"), "");
  EXPECT_THAT(message_of<Failure>([&] { OutputFile(folder.path("file/below")); }),
              HasSubstr("the folder cannot be made"));
}

}  // namespace
}  // namespace ridgeline
