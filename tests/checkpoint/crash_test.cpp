// A save that dies at any operation or finds the disk full at any byte leaves the old newest checkpoint or the new one.
#include <gtest/gtest.h>

#include "checkpoint/faulty_file_system.h"
#include "checkpoint/sample_checkpoint.h"
#include "checkpoint/scratch_folder.h"
#include "checkpoint/step_folder.h"

namespace ridgeline::checkpoint {
namespace {

constexpr int64_t kWorld = 2;

struct Save {
  int64_t step;
  int32_t salt;
};

// Saves and prunes on `files`; true where publish came to its end.
bool save_until_crash(const Path& folder, Save save, FileSystem& files) {
  bool published = false;
  try {
    save_sample(folder, save.step, kWorld, save.salt, files);
    published = true;
    prune(folder, 1, files);
  } catch (const Crash&) {
  }
  return published;
}

void expect_only(const Path& folder, int64_t step) {
  EXPECT_EQ(list_folder(folder), std::vector<std::string>{step_folder_name(step)});
  const std::vector<std::string> expected = {kManifestName, rank_file_name(0), rank_file_name(1)};
  EXPECT_EQ(list_folder(folder / step_folder_name(step)), expected);
}

// Crashes the save of `next`, on top of a whole checkpoint `before`, at every operation.
void crash_everywhere(Save before, Save next, bool keep_unsynced) {
  ScratchFolder folder;
  int64_t operations = 1;
  int old_survived = 0;
  int new_survived = 0;
  for (int64_t crash_at = 0; crash_at <= operations; ++crash_at) {
    SCOPED_TRACE("operation " + std::to_string(crash_at));
    folder.clear();
    FaultyFileSystem sound;
    save_sample(folder.path(), before.step, kWorld, before.salt, sound);
    FaultyFileSystem files;
    files.crash_at = crash_at;
    files.keep_unsynced = keep_unsynced;
    const bool published = save_until_crash(folder.path(), next, files);
    operations = files.operations();
    files.power_cycle();

    const std::optional<Path> newest = newest_complete(folder.path());
    ASSERT_TRUE(newest);
    const bool is_new = CheckpointReader(*newest).manifest().state["salt"] == next.salt;
    EXPECT_TRUE(is_new || !published);
    expect_sample(*newest, is_new ? next.step : before.step, is_new ? next.salt : before.salt);
    (is_new ? new_survived : old_survived)++;

    save_sample(folder.path(), 300, 2, 9, sound);
    prune(folder.path(), 1, sound);
    expect_only(folder.path(), 300);
    expect_sample(folder.path() / step_folder_name(300), 300, 9);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(operations, 25);
  EXPECT_GT(old_survived, 10);
  EXPECT_GT(new_survived, 2);
}

TEST(Crash, AtAnyOperationLosesWhatWasNotSynced) { crash_everywhere({100, 1}, {200, 2}, false); }

TEST(Crash, AtAnyOperationKeepsWhatWasWritten) { crash_everywhere({100, 1}, {200, 2}, true); }

TEST(Crash, WhileASavedStepIsSavedAgain) {
  crash_everywhere({100, 1}, {100, 2}, false);
  crash_everywhere({100, 1}, {100, 2}, true);
}

TEST(Crash, LeftoversOfALargerWorldDoNotMix) {
  ScratchFolder folder;
  for (int64_t rank = 0; rank < 4; ++rank) write_sample_rank(folder.path(), 200, 4, rank, 1);
  write_sample_rank(folder.path(), 150, 4, 3, 1);
  EXPECT_EQ(newest_complete(folder.path()), std::nullopt);
  save_sample(folder.path(), 200, 2, 2);
  expect_only(folder.path(), 200);
  expect_sample(folder.path() / step_folder_name(200), 200, 2);
}

TEST(DiskFull, AtAnyByte) {
  ScratchFolder folder;
  FaultyFileSystem sound;
  save_sample(folder.path(), 100, kWorld, 1, sound);
  const uint64_t total = sound.bytes_written();
  ASSERT_GT(total, 1000u);
  for (uint64_t room = 0; room < total; room += 7) {
    SCOPED_TRACE("room for " + std::to_string(room));
    FaultyFileSystem files;
    files.full_after = room;
    EXPECT_THROW(save_sample(folder.path(), 200, kWorld, 2, files), Failure);
    const std::optional<Path> newest = newest_complete(folder.path());
    ASSERT_TRUE(newest);
    expect_sample(*newest, 100, 1);
    // The same step goes through once there is room.
    const Path retried = save_sample(folder.path(), 200, kWorld, 2, sound);
    expect_sample(retried, 200, 2);
    std::filesystem::remove_all(retried);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(DiskFull, IsFoundBeforeWriting) {
  ScratchFolder folder;
  FaultyFileSystem files;
  files.free = 100;
  const std::string message = message_of<Failure>([&] { write_sample_rank(folder.path(), 7, 1, 0, 1, files); });
  EXPECT_NE(message.find("step 7 needs"), std::string::npos) << message;
  EXPECT_NE(message.find("only 100 B are free"), std::string::npos) << message;
  EXPECT_EQ(files.bytes_written(), 0u);

  files.free = 1 << 20;
  ShardWriter(folder.path(), 7, 0, files).write({}, 1 << 20);
  EXPECT_THROW(ShardWriter(folder.path(), 7, 0, files).write({}, (1 << 20) + 1), Failure);
}

TEST(DiskFull, GivesBackThePartialFile) {
  ScratchFolder folder;
  FaultyFileSystem files;
  files.full_after = 300;
  EXPECT_THROW(write_sample_rank(folder.path(), 7, 1, 0, 1, files), Failure);
  EXPECT_EQ(list_folder(folder.path() / step_folder_name(7, FolderState::temporary)), std::vector<std::string>{});
}

}  // namespace
}  // namespace ridgeline::checkpoint
