// ridgeline explain, as a user sees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kFixtures = RIDGELINE_SOURCE_DIR "/tests/spec/fixtures";

class Explain : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/ridgeline-explain-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Runs `ridgeline ARGUMENTS` in the test's folder.
  int run(const std::string& arguments) {
    const std::string command =
        "cd '" + folder_ + "' && '" RIDGELINE_COMMAND "' " + arguments + " >stdout 2>stderr </dev/null";
    const int status = std::system(command.c_str());
    output_ = read("stdout");
    errors_ = read("stderr");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }

  std::string folder_, output_, errors_;
};

TEST_F(Explain, AccountsForEveryKeyInEightyColumns) {
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures)) {
    std::filesystem::copy(entry.path(), folder_);
    ASSERT_EQ(run("explain " + entry.path().filename().string()), 0) << errors_;
    EXPECT_EQ(errors_, "");
    EXPECT_THAT(output_, StartsWith(entry.path().filename().string() + ": "));
    EXPECT_THAT(output_, HasSubstr("\nUnderstood\n"));
    EXPECT_THAT(output_, HasSubstr("\nAs a config of Ridgeline"));
    std::istringstream lines(output_);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << entry.path() << ": " << line;
  }
}

TEST_F(Explain, SaysTheSameInJson) {
  ASSERT_EQ(run("explain " + std::string(kFixtures) + "/mixtral-8x7b.json --json"), 0) << errors_;
  const nlohmann::json document = nlohmann::json::parse(output_);
  EXPECT_EQ(document["format"], "Hugging Face config.json (mixtral)");
  EXPECT_EQ(document["parameters"], 46'702'792'704);
  EXPECT_EQ(document["trainable"], false);
  EXPECT_EQ(document["devices"], nullptr);
  EXPECT_THAT(document["config"].get<std::string>(), HasSubstr("experts = 8\n"));
  for (const char* list : {"understood", "beyond", "ignored", "assumed", "missing"}) {
    EXPECT_TRUE(document[list].is_array()) << list;
  }
  for (const auto& setting : document["understood"]) {
    for (const char* key : {"key", "value", "where", "meaning"}) EXPECT_TRUE(setting[key].is_string()) << key;
  }
}

TEST_F(Explain, ItsConfigIsTakenByTrain) {
  ASSERT_EQ(run("explain " + std::string(kFixtures) + "/gpt2.json --json"), 0) << errors_;
  const nlohmann::json document = nlohmann::json::parse(output_);
  EXPECT_EQ(document["trainable"], true);
  write("run.toml", document["config"].get<std::string>());
  EXPECT_EQ(run("train run.toml"), 2);
  EXPECT_THAT(errors_, HasSubstr("data.path is missing"));  // all that it lacks
}

TEST_F(Explain, WrongInputExitsWithTwo) {
  write("c.json", "{\"model_type\": \"llama\", \"num_hidden_layers\": \"x\"}");
  EXPECT_EQ(run("explain c.json"), 2);
  EXPECT_EQ(output_, "");
  EXPECT_THAT(errors_, StartsWith("ridgeline: c.json: /num_hidden_layers = x: expected an integer"));
  EXPECT_EQ(run("explain none.json"), 2);
  EXPECT_THAT(errors_, StartsWith("ridgeline: none.json: cannot read: No such file"));
  EXPECT_EQ(run("explain"), 2);
  EXPECT_EQ(run("explain c.json --format hf"), 2);
  EXPECT_THAT(errors_, HasSubstr("--format hf: no such format"));
}

// Escape sequences of a file do not reach the terminal.
TEST_F(Explain, DoesNotPassControlCharactersOn) {
  write("c.json", "{\"model_type\": \"llama\\u001b[2J\"}");
  EXPECT_EQ(run("explain c.json"), 2);
  EXPECT_EQ(errors_.find('\x1b'), std::string::npos);
  write("d.json", "{\"train_batch_size\": 8, \"x\\u001b[2J\": \"\\u001b[2J\\u009b\"}");
  EXPECT_EQ(run("explain d.json"), 0);
  EXPECT_EQ(output_.find('\x1b'), std::string::npos);
}

}  // namespace
