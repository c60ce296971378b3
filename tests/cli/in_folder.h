// Runs the command as a user does, in a folder of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

struct Result {
  int exit_code = -1;
  std::string output;
  std::string errors;
};

inline std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class InFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/ridgeline-cli-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    unsetenv("RIDGELINE_ENGINE");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }
  // Runs `ridgeline ARGUMENTS` in the test's folder, with `environment` assignments before it.
  Result run(const std::string& arguments, const std::string& environment = "") {
    const std::string command = "cd '" + folder_ + "' && " + environment + " '" RIDGELINE_COMMAND "' " + arguments +
                                " >stdout 2>stderr </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(folder_ + "/stdout"), read(folder_ + "/stderr")};
  }
  std::string folder_;
};
