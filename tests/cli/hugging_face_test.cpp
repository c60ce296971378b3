// Weights from and to Hugging Face's form as a user moves them.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "checkpoint/safetensors.h"
#include "checkpoint/writer.h"
#include "cli/in_folder.h"
#include "spec/config.h"
#include "spec/families.h"
#include "spec/parameters.h"

namespace {

using namespace ridgeline;
using testing::HasSubstr;

class HuggingFaceCommands : public InFolder {
 protected:
  // A run of a small model, as `train` leaves it.
  void write_run(const std::string& name) {
    spec::TrainSpec spec;
    spec.model.layers = 2;
    spec.model.hidden = 16;
    spec.model.heads = 4;
    spec.model = spec::as_family(spec.model, "llama3");
    std::vector<std::vector<float>> values;
    std::vector<checkpoint::TensorShard> shards;
    for (const spec::ParameterSpec& parameter : spec::declare_parameters(spec.model, {})) {
      values.emplace_back(static_cast<size_t>(parameter.elements()), static_cast<float>(values.size()));
      shards.push_back({parameter.name, checkpoint::DType::F32, parameter.shape,
                        checkpoint::whole_slice(parameter.shape), {}});
    }
    for (size_t i = 0; i < shards.size(); ++i) shards[i].bytes = std::as_bytes(std::span(values[i]));
    const checkpoint::Path folder = checkpoint::Path(folder_) / name / "checkpoints";
    checkpoint::ShardWriter(folder, 7, 0).write(shards);
    checkpoint::publish(folder, 7, 1, {.consumed_samples = 56, .state = {{"config", spec::to_saved_toml(spec)}}});
  }
};

TEST_F(HuggingFaceCommands, ExportImportAndTrain) {
  write_run("run");
  const Result exported = run("checkpoint export run --out theirs --file-gib 1e-5");
  EXPECT_EQ(exported.exit_code, 0) << exported.errors;
  EXPECT_THAT(exported.output, HasSubstr("theirs: "));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/theirs/model.safetensors.index.json"));
  EXPECT_THAT(read(folder_ + "/theirs/config.json"), HasSubstr("\"LlamaForCausalLM\""));
  EXPECT_THAT(run("checkpoint export run --out theirs").errors, HasSubstr("theirs: is there already and not empty"));
  EXPECT_EQ(run("checkpoint export run --out other --dtype int8").exit_code, 2);

  const Result imported = run("checkpoint import theirs --out again --set model.sequence=64 --json");
  EXPECT_EQ(imported.exit_code, 0) << imported.errors;
  EXPECT_THAT(imported.output, HasSubstr("\"family\": \"llama\""));
  EXPECT_THAT(read(folder_ + "/again/config.toml"), HasSubstr("sequence = 64"));
  EXPECT_THAT(run("checkpoint list again").output, HasSubstr("step-00000000  complete"));
  EXPECT_THAT(run("checkpoint import theirs --out again").errors, HasSubstr("there are checkpoints already"));
  EXPECT_THAT(run("checkpoint import nowhere --out more").errors, HasSubstr("nowhere/config.json"));
}

TEST_F(HuggingFaceCommands, WrongWeightsAreRefusedBeforeRanksStart) {
  write("text.txt", "one\n\ntwo\n");
  ASSERT_EQ(run("data tokenize text.txt --output corpus").exit_code, 0);
  write_run("run");
  ASSERT_EQ(run("checkpoint export run --out theirs").exit_code, 0);
  write("run.toml", "[model]\nfrom = \"theirs\"\n[data]\npath = \"corpus\"\n[training]\nrun = \"new\"\n");
  write("engine", "#!/bin/sh\necho started\n");
  chmod((folder_ + "/engine").c_str(), 0755);
  const std::string engine = "RIDGELINE_ENGINE='" + folder_ + "/engine'";
  const Result good = run("train run.toml", engine);
  EXPECT_EQ(good.output, "started\n") << good.errors;

  const Result other = run("train run.toml --set model.ffn_hidden=32", engine);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_EQ(other.output, "");
  EXPECT_THAT(other.errors, HasSubstr("theirs/model.safetensors: tensor \"model.layers.0.mlp.gate_proj.weight\""));
  EXPECT_THAT(run("train run.toml --set model.preset=llama-tiny", engine).errors,
              HasSubstr("the folder's config.json is the preset"));
  std::filesystem::remove(folder_ + "/theirs/model.safetensors");
  EXPECT_THAT(run("train run.toml", engine).errors, HasSubstr("theirs: neither model.safetensors nor"));
}

}  // namespace
