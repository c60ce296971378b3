// Golden command lines: what a user types, what is printed, and the exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "checkpoint/step_folder.h"
#include "checkpoint/writer.h"
#include "cli/in_folder.h"
#include "source_folder.h"

namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Command : public InFolder {
 protected:
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
};

TEST_F(Command, VersionAndHelp) {
  EXPECT_THAT(run("--version").output, StartsWith("ridgeline "));
  const Result help = run("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.errors, "");
  for (const char* command : {"train", "generate", "evaluate", "report", "explain", "data", "checkpoint", "config"}) {
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
  EXPECT_THAT(error("[model]\ngated_mlp = false\nexperts = 2\n"),
              StartsWith("ridgeline: bad.toml:2: model.gated_mlp = false: `ridgeline train` runs models whose experts"));
  EXPECT_THAT(error("[model]\npreset = \"mixtral-tiny\"\n[strategy]\nexpert = 3\n"),
              StartsWith("ridgeline: bad.toml:4: strategy.expert = 3: 8 experts (model.experts) do not divide by it"));
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
  // Wrong input that all have is told once on each machine (tests/run); a rank that has it alone must not be mute.
  const std::string second = "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=n0 MASTER_PORT=1234 ";
  const Result alone = run("train run.toml --set strategy.tensor=3", second + fake_engine());
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.errors, HasSubstr("strategy.tensor = 3: 4 heads do not divide by 3"));
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

// A checkpoint whose config is `config`, as far as commands look that leave tensors to the engine.
void save_run(const std::string& folder, const std::string& config) {
  using namespace ridgeline::checkpoint;
  const float value = 1;
  ShardWriter(Path(folder) / "checkpoints", 7, 0)
      .write({{.name = "x",
               .dtype = DType::F32,
               .shape = {1},
               .slice = whole_slice({1}),
               .bytes = std::as_bytes(std::span(&value, 1))}});
  Progress progress;
  if (!config.empty()) progress.state = {{"config", config}};
  publish(Path(folder) / "checkpoints", 7, 1, progress);
}

TEST_F(Command, GenerateOpensTheNewestCheckpoint) {
  save_run(folder_ + "/run", "[strategy]\ntensor = 2\n");
  const std::string engine = fake_engine();
  const Result result = run("generate run --prompt '-- a \"b\"' --seed 5 --top-p 0.9 --set training.device=cpu", engine);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.output,
            "rank none of none: generate --tokens=200 --temperature=0.8 --top-k=40 --top-p=0.9 --seed=5 --samples=1 "
            "--prompt=-- a \"b\" --set=training.device=cpu -- run\n");
  EXPECT_EQ(run("generate run/checkpoints/step-00000007 --prompt-tokens 1,2 --json", engine).exit_code, 0);
  for (const char* wrong : {"run --tokens 0", "run --temperature -1", "run --top-p 0", "run --prompt a --prompt-tokens 1",
                            "run --prompt-tokens a", "run --set model.layers=2", "run --set optimizer.learning=2"}) {
    const Result refused = run(std::string("generate ") + wrong, engine);
    EXPECT_EQ(refused.exit_code, 2) << wrong;
    EXPECT_EQ(refused.output, "") << wrong;
  }
  EXPECT_THAT(run("generate run", "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=n0 MASTER_PORT=1 " + engine)
                  .errors,
              HasSubstr("generate writes on one rank, and torchrun has started 2"));
}

TEST_F(Command, ModelsWhoseTokensAreNotBytesAreToldApart) {
  save_run(folder_ + "/run", "[model]\nvocabulary = 50257\n");
  const Result refused = run("generate run --prompt Once", fake_engine());
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("the model's vocabulary is 50257: its tokens are not bytes"));
  EXPECT_EQ(run("generate run --prompt-tokens 1,50256", fake_engine()).exit_code, 0);
  EXPECT_EQ(run("generate run --prompt-tokens 1 --stop-at-end", fake_engine()).exit_code, 2);
  save_run(folder_ + "/foreign", "");
  EXPECT_THAT(run("generate foreign", fake_engine()).errors, HasSubstr("does not say which config it was trained under"));
  EXPECT_THAT(run("generate .", fake_engine()).errors, HasSubstr(".: holds no complete checkpoint"));
}

TEST_F(Command, EvaluateLaysTheModelOutAnew) {
  write_run();
  save_run(folder_ + "/run", "[strategy]\ntensor = 4\nglobal_batch = 64\n[data]\npath = \"corpus\"\n");
  const std::string engine = fake_engine();
  EXPECT_EQ(run("evaluate run", engine).output, "rank none of none: evaluate -- run\n");
  EXPECT_EQ(run("evaluate run --samples 0 --json --set strategy.tensor=1", engine).output,
            "rank none of none: evaluate --samples=0 --json --set=strategy.tensor=1 -- run\n");
  EXPECT_THAT(run("evaluate run --nproc 3", engine).output, HasSubstr("rank 2 of 3: evaluate -- run"));
  EXPECT_THAT(run("evaluate run --set strategy.tensor=3 --nproc 3", engine).errors, HasSubstr("4 heads do not divide by 3"));
  EXPECT_THAT(run("evaluate run --set data.path=gone", engine).errors, HasSubstr("cannot read gone.bin"));
}

TEST_F(Command, CheckpointOfNothing) {
  const Result missing = run("checkpoint inspect nowhere");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.errors, StartsWith("ridgeline: nowhere: no such folder"));
  EXPECT_THAT(run("checkpoint verify .").errors, HasSubstr("holds no complete checkpoint"));
  EXPECT_THAT(run("checkpoint list . --json").output, HasSubstr("\"checkpoints\": []"));
}

}  // namespace
