// Golden command lines: what a user types, what is printed, and the exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "checkpoint/step_folder.h"
#include "checkpoint/writer.h"

namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Result {
  int exit_code = -1;
  std::string output;
  std::string errors;
};

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Command : public testing::Test {
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
  // A config that is complete, and the data that it names.
  void write_run() {
    write("text.txt", "one\n\ntwo\n");
    ASSERT_EQ(run("data tokenize text.txt --output corpus").exit_code, 0);
    write("run.toml", "[data]\npath = \"corpus\"\n");
  }
  // In place of the engine: says its rank and words.
  std::string fake_engine(const std::string& more = "") {
    write("engine", "#!/bin/sh\necho rank ${RANK:-none} of ${WORLD_SIZE:-none}: \"$@\"\n" + more);
    chmod((folder_ + "/engine").c_str(), 0755);
    return "RIDGELINE_ENGINE='" + folder_ + "/engine'";
  }
  std::string folder_;
};

TEST_F(Command, VersionAndHelp) {
  EXPECT_THAT(run("--version").output, StartsWith("ridgeline "));
  const Result help = run("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.errors, "");
  for (const char* command : {"train", "data", "checkpoint", "config"}) {
    EXPECT_THAT(help.output, HasSubstr(command));
    const Result one = run(std::string(command) + " --help");
    EXPECT_EQ(one.exit_code, 0);
    EXPECT_THAT(one.output, HasSubstr("Example")) << command;
  }
}

TEST_F(Command, WrongWordsExitWithTwo) {
  const Result unknown = run("trian");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_EQ(unknown.output, "");
  EXPECT_THAT(unknown.errors, StartsWith("ridgeline: unknown command 'trian'; did you mean 'train'?"));
  for (const char* wrong : {"", "data", "checkpoint", "train", "train a.toml --nproc 0", "train a.toml --nporc 1",
                            "data tokenize x", "data tokenize x -o y --documents chapter", "--verbose"}) {
    const Result result = run(wrong);
    EXPECT_EQ(result.exit_code, 2) << wrong;
    EXPECT_THAT(result.errors, StartsWith("ridgeline: ")) << wrong;
    EXPECT_EQ(result.output, "") << wrong;
  }
}

TEST_F(Command, ConfigPageIsUpToDate) {
  EXPECT_EQ(run("config").output, read(RIDGELINE_SOURCE_DIR "/docs/config.md"))
      << "run `ridgeline config > docs/config.md`";
}

TEST_F(Command, ExampleConfigTrains) {
  write_run();
  const std::string engine = fake_engine();
  write("example.toml", run("config --example").output);
  const Result result = run("train example.toml", engine);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.output, "rank none of none: train -- example.toml\n");
}

TEST_F(Command, TrainNamesFileLineAndKey) {
  write_run();
  const auto error = [&](const std::string& text) {
    write("bad.toml", text);
    const Result result = run("train bad.toml");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.output, "");
    return result.errors;
  };
  EXPECT_EQ(error("[optimizer]\nlearning_rate = 1\n"),
            "ridgeline: bad.toml:2: unknown key 'optimizer.learning_rate' (`ridgeline config` lists all keys)\n");
  EXPECT_EQ(error("[strategy]\ntensr = 1\n"),
            "ridgeline: bad.toml:2: unknown key 'strategy.tensr'; did you mean 'strategy.tensor'? (`ridgeline config` "
            "lists all keys)\n");
  EXPECT_EQ(error("[model]\nlayers = \"four\"\n"),
            "ridgeline: bad.toml:2: model.layers: expected an integer 1 to 100000, found the string 'four'\n");
  EXPECT_EQ(error("[strategy]\ntensor = 3\n"),
            "ridgeline: bad.toml:2: strategy.tensor = 3: 4 heads do not divide by 3; use one of 1, 2, 4\n");
  EXPECT_THAT(error("[data]\npath = \"nowhere\"\n"),
              StartsWith("ridgeline: bad.toml:2: data.path = 'nowhere': cannot read nowhere.bin: No such file"));
  EXPECT_THAT(error(""), StartsWith("ridgeline: data.path is missing"));
  EXPECT_THAT(run("train none.toml").errors, StartsWith("ridgeline: none.toml: cannot read: No such file"));
}

TEST_F(Command, TrainPassesSetsOnAndChecksThem) {
  write_run();
  const std::string engine = fake_engine();
  const Result result = run("train run.toml --set training.steps=3 --set 'training.run=my run'", engine);
  EXPECT_EQ(result.output, "rank none of none: train --set=training.steps=3 --set=training.run=my run -- run.toml\n");
  EXPECT_EQ(run("train --set training.steps=3 run.toml", engine).exit_code, 0);
  const Result wrong = run("train run.toml --set training.steps=many", engine);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.errors, StartsWith("ridgeline: --set: training.steps: expected an integer"));
  EXPECT_EQ(wrong.output, "");
}

TEST_F(Command, NprocStartsRanks) {
  write_run();
  const Result result = run("train run.toml --nproc 2 --set strategy.tensor=2", fake_engine());
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("rank 0 of 2: train"));
  EXPECT_THAT(result.output, HasSubstr("rank 1 of 2: train"));
  const Result wrong = run("train run.toml --nproc 3 --set strategy.tensor=2", fake_engine());
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.errors, HasSubstr("--set: strategy.tensor = 2: 3 ranks cannot be cut in groups"));
}

TEST_F(Command, ExitCodeOfTheEngineComesThrough) {
  write_run();
  EXPECT_EQ(run("train run.toml", fake_engine("exit 3\n")).exit_code, 3);
  EXPECT_EQ(run("train run.toml --nproc 2", fake_engine("exit 3\n")).exit_code, 3);
}

TEST_F(Command, LaunchersAreUnderstood) {
  write_run();
  const std::string ranks = "RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=n0 MASTER_PORT=1234 ";
  const Result result = run("train run.toml --set strategy.tensor=2", ranks + fake_engine());
  EXPECT_EQ(result.output, "rank 1 of 2: train --set=strategy.tensor=2 -- run.toml\n") << result.errors;
  const Result twice = run("train run.toml --nproc 2", ranks + fake_engine());
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.errors, HasSubstr("torchrun has started 2 ranks already"));
  // Wrong input is told once on each machine.
  const std::string second = "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=n0 MASTER_PORT=1234 ";
  const Result silent = run("train run.toml --set strategy.tensor=3", second + fake_engine());
  EXPECT_EQ(silent.exit_code, 2);
  EXPECT_EQ(silent.errors, "");
}

TEST_F(Command, DataIsMadeAndInspected) {
  write("text.txt", "one\n\ntwo\n");
  const Result made = run("data tokenize text.txt --output corpus --documents paragraph --json");
  EXPECT_EQ(made.exit_code, 0) << made.errors;
  EXPECT_THAT(made.output, HasSubstr("\"documents\": 2"));
  EXPECT_THAT(made.output, HasSubstr("\"tokens\": 8"));
  EXPECT_EQ(run("data tokenize text.txt --output corpus").exit_code, 2) << "an existing output was replaced";
  const Result seen = run("data inspect corpus --vocabulary 257");
  EXPECT_THAT(seen.output, HasSubstr("2 documents in 2 sequences, 8 tokens (uint16), longest document 4 tokens"));
  EXPECT_EQ(run("data inspect corpus --vocabulary 10").exit_code, 2);
  const Result missing = run("data inspect nowhere");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.errors, HasSubstr("nowhere"));
}

TEST_F(Command, CheckpointsAreListedInspectedAndVerified) {
  using namespace ridgeline::checkpoint;
  const Path folder = Path(folder_) / "run" / "checkpoints";
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  for (const int64_t step : {10, 20}) {
    ShardWriter(folder, step, 0)
        .write({{.name = "head.weight",
                 .dtype = DType::F32,
                 .shape = {2, 3},
                 .slice = whole_slice({2, 3}),
                 .bytes = std::as_bytes(std::span(values))}});
    publish(folder, step, 1, {.consumed_samples = 8 * step});
  }
  const Result listed = run("checkpoint list run");
  EXPECT_EQ(listed.output, "run/checkpoints/step-00000020  complete\nrun/checkpoints/step-00000010  complete\n");
  EXPECT_THAT(run("checkpoint inspect run").output, HasSubstr("step 20, 160 samples consumed, 1 tensors in 1 files"));
  EXPECT_THAT(run("checkpoint inspect run/checkpoints/step-00000010").output, HasSubstr("head.weight F32 [2, 3]"));
  EXPECT_EQ(run("checkpoint verify run").exit_code, 0);

  // One changed byte of the values, at the file's end.
  std::fstream file(folder / "step-00000020" / rank_file_name(0), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('?');
  file.close();
  const Result damaged = run("checkpoint verify run");
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_THAT(damaged.output, HasSubstr("rank-00000.safetensors"));
}

TEST_F(Command, CheckpointOfNothing) {
  const Result missing = run("checkpoint inspect nowhere");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.errors, StartsWith("ridgeline: nowhere: no such folder"));
  EXPECT_THAT(run("checkpoint verify .").errors, HasSubstr("holds no complete checkpoint"));
  EXPECT_THAT(run("checkpoint list . --json").output, HasSubstr("\"checkpoints\": []"));
}

}  // namespace
