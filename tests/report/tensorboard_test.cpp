#include "report/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <regex>

#include "core/error.h"
#include "core/temporary_folder.h"
#include "report/crc32c.h"

namespace ridgeline::report {
namespace {

template <typename T>
T number_at(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

uint32_t unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

// The payloads of the records of a file, with their check sums verified.
std::vector<std::string> records(const std::string& path) {
  const auto bytes = read_file(path);
  std::vector<std::string> payloads;
  for (size_t at = 0; at < bytes.size();) {
    const auto length = number_at<uint64_t>(bytes, at);
    EXPECT_EQ(unmask(number_at<uint32_t>(bytes, at + 8)), crc32c(bytes.substr(at, 8)));
    payloads.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(unmask(number_at<uint32_t>(bytes, at + 12 + length)), crc32c(payloads.back()));
    at += 16 + length;
  }
  return payloads;
}

// RFC 3720, B.4.
TEST(Crc32c, PublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(EventFile, NameIsWhatTensorBoardLooksFor) {
  const TemporaryFolder folder;
  const EventFile first(folder.path("run"), 0);
  const EventFile second(folder.path("run"), 0);
  const auto name = std::filesystem::path(first.path()).filename().string();
  EXPECT_TRUE(std::regex_match(name, std::regex(R"(events\.out\.tfevents\.\d{10,}\..+\.\d+)"))) << name;
  EXPECT_NE(first.path(), second.path());
}

TEST(EventFile, RecordsAreThereWhenTheCallReturns) {
  const TemporaryFolder folder;
  EventFile events(folder.path("run"), 0);
  ASSERT_EQ(records(events.path()).size(), 1u);
  EXPECT_THAT(records(events.path())[0], testing::HasSubstr("brain.Event:2"));
  events.scalars(300, {{"loss", 1.5}});
  const auto payload = records(events.path()).at(1);
  // step = 300 as a varint; a summary with one value of tag "loss" and simple_value 1.5.
  EXPECT_EQ(payload.substr(9), std::string("\x10\xac\x02"
                                           "\x2a\x0d\x0a\x0b\x0a\x04loss\x15\x00\x00\xc0\x3f",
                                           18));
}

TEST(EventFile, AResumedRunStartsASession) {
  const TemporaryFolder folder;
  const EventFile events(folder.path("run"), 6);
  const auto all = records(events.path());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].substr(9), "\x10\x07\x3a\x02\x08\x01");
}

TEST(EventFile, AFolderThatCannotBeIsAFailure) {
  const TemporaryFolder folder;
  write_file(folder.path("file"), "x");
  EXPECT_THAT([&] { EventFile(folder.path("file"), 0); },
              testing::ThrowsMessage<Failure>(testing::HasSubstr("events.out.tfevents")));
}

}  // namespace
}  // namespace ridgeline::report
