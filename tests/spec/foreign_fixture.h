// Reads foreign configurations from texts and from tests/spec/fixtures.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "source_folder.h"
#include "spec/foreign_config.h"

namespace ridgeline::spec {

class Foreign : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/ridgeline-foreign-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static ForeignConfig fixture(const std::string& name) {
    return read_foreign_config(RIDGELINE_SOURCE_DIR "/tests/spec/fixtures/" + name);
  }
  ForeignConfig read(const std::string& name, const std::string& text, const std::string& format = "") {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return read_foreign_config(path, format);
  }
  // The error's text without the folder, "no error" where there is none.
  std::string error(const std::string& name, const std::string& text, const std::string& format = "") {
    try {
      read(name, text, format);
    } catch (const InputError& error) {
      std::string words = error.what();
      for (size_t at = 0; (at = words.find(folder_ + "/")) != std::string::npos;) words.erase(at, folder_.size() + 1);
      return words;
    }
    return "no error";
  }
  // What became of `name`, "" where the list has none of it.
  static std::string meaning(const std::vector<ForeignSetting>& list, const std::string& name) {
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const ForeignSetting& setting) { return setting.name == name; });
    return found == list.end() ? "" : found->meaning;
  }
  std::string folder_;
};

}  // namespace ridgeline::spec
