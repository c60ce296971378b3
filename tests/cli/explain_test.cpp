// ridgeline explain, as a user sees it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/in_folder.h"
#include "source_folder.h"

namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kFixtures = RIDGELINE_SOURCE_DIR "/tests/spec/fixtures";

class Explain : public InFolder {
 protected:
  // Runs `ridgeline ARGUMENTS`, and keeps what it said.
  int run(const std::string& arguments) {
    const Result result = InFolder::run(arguments);
    output_ = result.output;
    errors_ = result.errors;
    return result.exit_code;
  }
  std::string read(const std::string& name) const { return ::read(folder_ + "/" + name); }

  std::string output_, errors_;
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
  EXPECT_EQ(document["trainable"], true);
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
