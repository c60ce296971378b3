// plan, simulate and validate as a user calls them.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/in_folder.h"
#include "source_folder.h"

namespace {

using nlohmann::json;
using testing::HasSubstr;

class Planning : public InFolder {
 protected:
  std::string read(const std::string& name) const { return ::read(folder_ + "/" + name); }
  Result run(const std::string& arguments) {
    return InFolder::run(arguments, "RIDGELINE_MACHINES='" RIDGELINE_SOURCE_DIR "/machines'");
  }
};

double sum(const json& object) {
  double total = 0;
  for (const auto& [key, value] : object.items()) total += value.get<double>();
  return total;
}

TEST_F(Planning, PlanGivesTheDesignsKeysBestFirst) {
  const Result result = run("plan --model gpt-175b --machine frontier --nodes 128 --global-batch 640 --top 5 --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json document = json::parse(result.output);
  EXPECT_GT(document["considered"], 1000);
  EXPECT_GE(document["seconds"].get<double>(), 0);
  ASSERT_EQ(document["strategies"].size(), 5u);
  double last = 0;
  for (const json& entry : document["strategies"]) {
    const json& strategy = entry["strategy"];
    EXPECT_EQ(strategy["tensor"].get<int>() * strategy["pipeline"].get<int>() * strategy["data"].get<int>(), 1024);
    for (const char* key : {"virtual_pipeline", "context", "expert", "zero_stage", "micro_batch", "global_batch",
                            "recompute", "sequence_parallel", "schedule"}) {
      EXPECT_TRUE(strategy.contains(key)) << key;
    }
    EXPECT_NEAR(sum(entry["time"]), entry["step_seconds"].get<double>(), 1e-9);
    const json& memory = entry["memory"];
    EXPECT_NEAR(memory["weights"].get<double>() + memory["gradients"].get<double>() +
                    memory["optimizer"].get<double>() + memory["activations"].get<double>() +
                    memory["buffers"].get<double>(),
                memory["total"].get<double>(), 1.0);
    EXPECT_TRUE(entry["fits"].get<bool>());
    EXPECT_GE(entry["step_seconds"].get<double>(), last);
    last = entry["step_seconds"];
  }
}

TEST_F(Planning, WrittenConfigIsSimulatedAndReadByTrain) {
  Result result = run("plan --model gpt-22b --machine frontier --nodes 4 --global-batch 64 --write best.toml --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json best = json::parse(result.output)["strategies"][0];
  result = run("simulate best.toml --machine frontier --nodes 4 --trace trace.json --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json simulated = json::parse(result.output);
  EXPECT_EQ(simulated["strategy"], best["strategy"]);
  EXPECT_NEAR(simulated["step_seconds"].get<double>(), best["step_seconds"].get<double>(), 1e-9);
  EXPECT_EQ(simulated["stages"].size(), simulated["strategy"]["pipeline"].get<size_t>());
  const json& strategy = simulated["strategy"];
  const size_t stages = strategy["pipeline"], micro_batches = strategy["global_batch"].get<size_t>() /
                                                              strategy["data"].get<size_t>() /
                                                              strategy["micro_batch"].get<size_t>();
  EXPECT_EQ(json::parse(read("trace.json")).at("traceEvents").size(), 4 * stages + 2 * stages * micro_batches);
}

TEST_F(Planning, SaysWhatWouldFitWhereNothingDoes) {
  const Result result = run("plan --model gpt-1t --machine frontier --nodes 16 --global-batch 128 --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json document = json::parse(result.output);
  EXPECT_TRUE(document["strategies"].empty());
  ASSERT_FALSE(document["nearest"].empty());
  EXPECT_GT(document["nearest"][0]["missing_bytes"].get<double>(), 0);
  ASSERT_FALSE(document["nearest"][0]["changes"].empty());
  EXPECT_GT(document["nearest"][0]["changes"][0]["devices"].get<int>(), 128);
}

TEST_F(Planning, WithoutNodesGivesTheCurve) {
  const Result result = run("plan --model gpt-22b --machine frontier --global-batch 1024 --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json curve = json::parse(result.output)["curve"];
  ASSERT_GT(curve.size(), 4u);
  for (size_t i = 1; i < curve.size(); ++i) EXPECT_GT(curve[i]["devices"], curve[i - 1]["devices"]);
  EXPECT_LT(curve[4]["step_seconds"].get<double>(), curve[0]["step_seconds"].get<double>());
}

TEST_F(Planning, TrainableHoldsInEverySearchOfTheCommand) {
  const std::string model = "plan --model gpt-22b --machine frontier --json --trainable ";
  const json curve = json::parse(run(model + "--global-batch 1024").output)["curve"];
  ASSERT_FALSE(curve.empty());
  for (const json& point : curve) EXPECT_TRUE(point["trainable"].get<bool>()) << point;
  const Result result = run("plan --model gpt-1t --machine frontier --nodes 16 --global-batch 128 --trainable --json");
  for (const json& near : json::parse(result.output)["nearest"]) {
    EXPECT_TRUE(near["trainable"].get<bool>());
    for (const json& change : near["changes"]) EXPECT_TRUE(change["trainable"].get<bool>()) << change;
  }
}

TEST_F(Planning, ChangesStayWithinTheMachine) {
  write("small.toml", "[machine]\nname = \"small\"\nbase = \"frontier\"\nnodes = 24\n");
  const Result result = run("plan --model gpt-1t --machine ./small.toml --nodes 16 --global-batch 128 --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  for (const json& near : json::parse(result.output)["nearest"]) {
    for (const json& change : near["changes"]) EXPECT_LE(change.value("devices", 0), 24 * 8);
  }
}

TEST_F(Planning, AConfigIsPlannedInItsPrecision) {
  write("run.toml", "[model]\npreset = \"gpt-1.3b\"\n[precision]\ncompute = \"fp32\"\n");
  const std::string rest = " --machine frontier --nodes 2 --global-batch 64 --trainable --json";
  const json single = json::parse(run("plan --model run.toml --write w.toml" + rest).output);
  EXPECT_EQ(single["precision"], "fp32");
  EXPECT_THAT(read("w.toml"), HasSubstr("compute = \"fp32\""));
  const json preset = json::parse(run("plan --model gpt-1.3b" + rest).output);
  EXPECT_EQ(preset["precision"], "bf16");
  EXPECT_GT(single["strategies"][0]["step_seconds"], preset["strategies"][0]["step_seconds"]);
}

TEST_F(Planning, FitsOfRecordedRunsAreWarnedOf) {
  const std::string rest = " --nodes 2 --global-batch 64 --json";
  const Result fit = run("plan --model gpt-1.3b --machine frontier-neox" + rest);
  EXPECT_THAT(fit.errors, HasSubstr("frontier-neox is a curve fit"));
  EXPECT_EQ(json::parse(fit.output)["machine_purpose"], "curve fit");
  EXPECT_EQ(run("plan --model gpt-1.3b --machine frontier" + rest).errors, "");
}

TEST_F(Planning, ConfigsOfOtherProgramsAreSimulatedOnTheirDevices) {
  write("t.toml",
        "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 2048\n"
        "local_batch_size = 1\nglobal_batch_size = 64\n[parallelism]\ndata_parallel_shard_degree = 8\n"
        "tensor_parallel_degree = 2\ncontext_parallel_degree = 1\n");
  Result result = run("simulate t.toml --machine h200 --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json simulated = json::parse(result.output);
  EXPECT_EQ(simulated["strategy"]["data"], 8);
  EXPECT_EQ(simulated["strategy"]["zero_stage"], 3);
  EXPECT_EQ(simulated["precision"], "bf16");

  const std::string script =
      "python pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 512 "
      "--vocab-size 999 --micro-batch-size 1 --bf16 --expert-model-parallel-size 1 --fp8-format hybrid ";
  write("s.sh", script);
  result = run("simulate s.sh --machine h200 --nodes 1");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("strategy.global_batch: the file has no --global-batch-size"));
  result = run("simulate s.sh --machine h200 --nodes 1 --set strategy.global_batch=32 --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("--fp8-format"));
  EXPECT_EQ(json::parse(result.output)["strategy"]["global_batch"], 32);
}

TEST_F(Planning, InterleavingIsPredictedAndTraced) {
  write("run.toml",
        "[model]\npreset = \"gpt-22b\"\n[strategy]\npipeline = 8\nglobal_batch = 64\nrecompute = \"full\"\n"
        "[precision]\ncompute = \"bf16\"\n");
  const json plain = json::parse(run("simulate run.toml --machine frontier --nodes 1 --json").output);
  const Result result =
      run("simulate run.toml --machine frontier --nodes 1 --set strategy.virtual_pipeline=3 --trace t.json --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json interleaved = json::parse(result.output);
  EXPECT_LT(interleaved["time"]["bubble"].get<double>(), 0.5 * plain["time"]["bubble"].get<double>());
  EXPECT_GT(interleaved["time"]["pipeline_comm"].get<double>(), plain["time"]["pipeline_comm"].get<double>());
  EXPECT_EQ(json::parse(read("t.json")).at("traceEvents").size(), 4 * 8u + 8 * 64 * 3 * 2);
}

// What is written is what the simulator ran; read back it takes the same time, but played instead of predicted.
TEST_F(Planning, SchedulesAreWrittenAndReadBack) {
  write("run.toml",
        "[model]\npreset = \"gpt-22b\"\n[strategy]\npipeline = 4\nglobal_batch = 32\nschedule = \"zero_bubble_v\"\n"
        "[precision]\ncompute = \"bf16\"\n");
  const std::string simulate = "simulate run.toml --machine frontier --devices 4 --json";
  const Result made = run(simulate + " --write-schedule step.schedule");
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  EXPECT_THAT(read("step.schedule"),
              testing::StartsWith("ridgeline-schedule 1\nstages 4\nchunks 2\nmicro_batches 32\nlayout vee\n"));
  const Result from_file =
      run(simulate + " --set strategy.schedule_file=step.schedule --write-schedule again.schedule");
  ASSERT_EQ(from_file.exit_code, 0) << from_file.errors;
  EXPECT_EQ(read("again.schedule"), read("step.schedule"));
  const double closed = json::parse(made.output)["step_seconds"],
               played = json::parse(from_file.output)["step_seconds"];
  EXPECT_NEAR(closed / played, 1.0, 0.07);
  const Result other = run(simulate + " --set strategy.schedule_file=step.schedule --set strategy.global_batch=16");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, testing::HasSubstr("it has 32 micro-batches, this strategy 16"));
  write("bad.schedule",
        "ridgeline-schedule 1\nstages 4\nchunks 2\nmicro_batches 1\nlayout vee\nstage 0: F0.0 F0.1 B0.1 B0.2\n");
  const Result bad = run(simulate + " --set strategy.schedule_file=bad.schedule");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.errors, testing::HasSubstr("bad.schedule, line 6: '2' is no chunk: expected 0 to 1"));
}

TEST_F(Planning, ValidateReportsEachSource) {
  const Result result = run("validate --measured '" RIDGELINE_SOURCE_DIR "/validation/throughput.csv' --json");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json document = json::parse(result.output);
  EXPECT_EQ(document["all"]["rows"], 20);
  for (const json& source : document["sources"]) {
    for (const char* key : {"source", "rows", "predicted", "mean_error", "mean_absolute_error", "p95_absolute_error",
                            "kendall_tau", "regret"}) {
      EXPECT_TRUE(source.contains(key)) << key;
    }
    if (source["source"].get<std::string>().starts_with("Dash")) {
      EXPECT_LT(source["mean_absolute_error"], 0.08);
    }
  }
}

TEST_F(Planning, BadInputIsNamed) {
  const auto refused = [&](const std::string& arguments, const char* words) {
    const Result result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_EQ(result.output, "");
    EXPECT_THAT(result.errors, HasSubstr(words)) << arguments;
  };
  refused("plan --model gpt-175 --machine frontier --nodes 2 --global-batch 8", "did you mean 'gpt-175b'?");
  refused("plan --model gpt-175b --machine frontire --nodes 2 --global-batch 8", "did you mean 'frontier'?");
  refused("plan --model gpt-175b --machine frontier --nodes 100000 --global-batch 8", "frontier has 9408 nodes");
  refused("plan --model gpt-175b --machine frontier --nodes 2 --devices 16 --global-batch 8", "give one of them");
  write("run.toml", "[model]\npreset = \"gpt-22b\"\n[strategy]\ntensor = 7\n");
  refused("simulate run.toml --machine frontier --nodes 7", "run.toml:4");
  write("big.toml", "[model]\npreset = \"gpt-22b\"\n[strategy]\npipeline = 8\nglobal_batch = 1000000\n");
  write("bad.toml",
        "[machine]\nname = \"x\"\nbase = \"frontier\"\n[device]\nmemory_gb_per_s = 1.6\nmemory_gib = 1e12\n");
  refused("simulate run.toml --machine ./bad.toml --nodes 1", "bad.toml:6: device.memory_gib");
  write("runs.csv", "a,b\n1,2\n");
  refused("plan --model gpt-22b --machine frontier --global-batch 1024 --write w.toml", "add --nodes or --devices");
  refused("plan --model gpt-1t --machine frontier --nodes 16 --global-batch 128 --write w.toml", "nothing fits");
  write("norm.toml", "[model]\npreset = \"gpt-22b\"\nembedding_norm = true\n");
  refused("plan --model ./norm.toml --machine frontier --nodes 2 --global-batch 8 --trainable", "`ridgeline train`");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/w.toml"));
  refused("simulate big.toml --machine frontier --trace t.json", "strategy.global_batch = 1000000");
  // A --set takes one word: what follows it is the config.
  refused("simulate --set strategy.tensor=7 run.toml --machine frontier --nodes 7", "strategy.tensor = 7");
  refused("validate --measured runs.csv", "runs.csv");
}

}  // namespace
