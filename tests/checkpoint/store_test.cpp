#include "checkpoint/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/manifest.h"
#include "checkpoint/sample_checkpoint.h"
#include "checkpoint/scratch_folder.h"
#include "checkpoint/step_folder.h"
#include "core/error.h"

namespace ridgeline::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Store, NamesAreReadAsTheyAreWritten) {
  for (FolderState state :
       {FolderState::complete, FolderState::temporary, FolderState::replaced, FolderState::removed}) {
    for (int64_t step : {int64_t{0}, int64_t{100}, int64_t{123456789012}}) {
      EXPECT_EQ(parse_step_folder(step_folder_name(step, state)), (StepFolder{step, state}));
    }
  }
  EXPECT_EQ(step_folder_name(100, FolderState::temporary), "step-00000100.tmp");
  for (const char* name : {"step-100", "step-00000100.bak", "step-", "step--0000001", "epoch-00000100",
                           "step-00000100 ", "step-99999999999999999999"}) {
    EXPECT_EQ(parse_step_folder(name), std::nullopt) << name;
  }
}

TEST(Store, FallsBackToTheNewestThatIsWholeAndSaysWhy) {
  ScratchFolder folder;
  for (int64_t step : {1, 2, 3, 4, 5}) save_sample(folder.path(), step, 2, static_cast<int32_t>(step));
  std::filesystem::remove(folder.path() / "step-00000005" / kManifestName);
  spill(folder.path() / "step-00000004" / rank_file_name(0), "cut short");
  std::string manifest = slurp(folder.path() / "step-00000003" / kManifestName);
  const size_t at = manifest.find("\"consumed_samples\":24");
  ASSERT_NE(at, std::string::npos);
  manifest.replace(at, 21, "\"consumed_samples\":42");
  spill(folder.path() / "step-00000003" / kManifestName, manifest);
  write_sample_rank(folder.path(), 6, 1, 0, 6);

  std::vector<std::string> reasons;
  const auto newest = newest_complete(folder.path(), [&](const std::string& reason) { reasons.push_back(reason); });
  EXPECT_EQ(newest, folder.path() / "step-00000002");
  EXPECT_THAT(reasons,
              ElementsAre(HasSubstr("step-00000005 is not usable: it has no manifest.json"),
                          HasSubstr("rank-00000.safetensors has 9 bytes, expected"), HasSubstr("the file is damaged")));
  EXPECT_EQ(newest_complete(folder.path() / "none"), std::nullopt);
}

TEST(Store, PruneKeepsWholeOnes) {
  ScratchFolder folder;
  for (int64_t step : {1, 2, 3, 4}) save_sample(folder.path(), step, 1, 1);
  spill(folder.path() / "notes.txt", "mine");
  std::filesystem::remove(folder.path() / "step-00000004" / kManifestName);
  prune(folder.path(), 0);
  EXPECT_EQ(list_checkpoints(folder.path()).size(), 4u);
  prune(folder.path(), 2);
  EXPECT_THAT(list_folder(folder.path()), ElementsAre("notes.txt", "step-00000002", "step-00000003", "step-00000004"));
  prune(folder.path(), 1);
  EXPECT_THAT(list_folder(folder.path()), ElementsAre("notes.txt", "step-00000003", "step-00000004"));
}

Manifest sample_manifest() {
  Manifest manifest;
  manifest.step = 7;
  manifest.consumed_samples = 56;
  manifest.state = {{"loss_scale", 65536.0}, {"config", "[model]\nlayers = 2\n"}, {"small", 1e-310}};
  manifest.files = {{"rank-00000.safetensors", 128, 0x0123456789abcdef}};
  manifest.tensors = {
      {"a", DType::F32, {2, 3}, {{0, "a", {{{0, 1}, {2, 2}}, {1, 3}}}, {0, "a#1", whole_slice({2, 3})}}},
      {"b", DType::I64, {}, {{0, "b", whole_slice({})}}}};
  return manifest;
}

TEST(ManifestFile, ReadsWhatItWrites) {
  const Manifest manifest = sample_manifest();
  const std::string text = encode_manifest(manifest);
  const Manifest found = decode_manifest(text, "m");
  EXPECT_EQ(encode_manifest(found), text);
  EXPECT_EQ(found.state, manifest.state);
  EXPECT_EQ(found.files[0].checksum, manifest.files[0].checksum);
  ASSERT_NE(found.find("a"), nullptr);
  EXPECT_EQ(found.find("a")->pieces[0].slice, manifest.tensors[0].pieces[0].slice);
  EXPECT_EQ(found.find("c"), nullptr);
}

TEST(ManifestFile, AnyChangedByteIsNoticed) {
  const std::string text = encode_manifest(sample_manifest());
  for (size_t at = 0; at + 1 < text.size(); ++at) {
    std::string changed = text;
    changed[at] ^= 1;
    EXPECT_THROW(decode_manifest(changed, "m"), InputError) << changed;
    EXPECT_THROW(decode_manifest(text.substr(0, at), "m"), InputError);
  }
}

TEST(ManifestFile, RefusesWhatIsHostileThoughItsChecksumFits) {
  auto refusal = [](auto change) {
    Manifest manifest = sample_manifest();
    change(manifest);
    return message_of<InputError>([&] { decode_manifest(encode_manifest(manifest), "m"); });
  };
  for (const char* name : {"../secret", "/etc/passwd", "", ".", "..", "a/b"}) {
    EXPECT_THAT(refusal([&](Manifest& manifest) { manifest.files[0].name = name; }), HasSubstr("plain name")) << name;
  }
  auto piece = [](Manifest& manifest) -> Piece& { return manifest.tensors[0].pieces[0]; };
  EXPECT_THAT(refusal([&](Manifest& manifest) { piece(manifest).file = 1; }), HasSubstr("file number 1"));
  EXPECT_THAT(refusal([&](Manifest& manifest) { piece(manifest).slice.range.end = 5; }), HasSubstr("range 1..5"));
  EXPECT_THAT(refusal([&](Manifest& manifest) { piece(manifest).slice.box.offset[1] = 2; }),
              HasSubstr("m: tensor \"a\", piece 0"));
  EXPECT_THAT(refusal([&](Manifest& manifest) { piece(manifest).slice.box.extent.pop_back(); }),
              HasSubstr("1 extents"));
  EXPECT_THAT(refusal([&](Manifest& manifest) { manifest.tensors[0].shape = {1LL << 40, 1LL << 40}; }),
              HasSubstr("too large"));
  EXPECT_THAT(refusal([&](Manifest& manifest) { manifest.step = -1; }), HasSubstr("\"step\" is -1"));
  EXPECT_THAT(message_of<InputError>([] { decode_manifest(R"({"format":2})", "m"); }), HasSubstr("format 2"));
}

}  // namespace
}  // namespace ridgeline::checkpoint
