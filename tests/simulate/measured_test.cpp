// The readers of recorded tables, on invented rows.
#include "simulate/measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "simulate/measured_scaling.h"
#include "simulate/validation.h"

namespace ridgeline::simulate {
namespace {

using testing::HasSubstr;

constexpr const char* kVtrainHeader =
    "Parameters (billion),# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor "
    "parallelism,data parallelism,pipeline parallelism,iteration time (ms)\n";

TEST(Measured, VtrainsTable) {
  const auto runs = measured_runs(parse_table(std::string(kVtrainHeader) +
                                                  "1.0,16,64,2,1024,16,24,2048,2,4,2,1500.5\n"
                                                  "1.0,8,64,2,1024,16,24,2048,3,4,2,1500.5\n"
                                                  "1.0,8,64,2,1024,16,24,2048,2,2,2,\n",
                                              "v.csv"));
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].why_not, "");
  EXPECT_EQ(runs[0].source, "vTrain, several nodes");
  EXPECT_EQ(runs[0].machine, "a100-vtrain");
  EXPECT_EQ(runs[0].strategy.tensor, 2);
  EXPECT_EQ(runs[0].strategy.pipeline, 2);
  EXPECT_EQ(runs[0].strategy.data, 4);
  EXPECT_EQ(runs[0].strategy.recompute, spec::Recompute::full);
  EXPECT_EQ(runs[0].compute, spec::Precision::fp16);
  EXPECT_DOUBLE_EQ(runs[0].step_seconds, 1.5005);
  EXPECT_EQ(runs[1].source, "vTrain, one node");
  EXPECT_THAT(runs[1].why_not, HasSubstr("strategy.tensor = 3"));
  EXPECT_THAT(runs[2].why_not, HasSubstr("step time"));
}

TEST(Measured, SelenesTable) {
  const auto runs = measured_runs(parse_table("model,iter_full_s,iter_seqsel_s\ngpt3-175B,20,\nsomething-9B,1,1\n", "s.csv"));
  ASSERT_EQ(runs.size(), 2u);  // of the model that the paper has, both columns
  EXPECT_EQ(runs[0].why_not, "");
  EXPECT_EQ(runs[0].devices, 64);
  EXPECT_EQ(runs[0].strategy.virtual_pipeline, 3);
  EXPECT_EQ(runs[0].strategy.recompute, spec::Recompute::full);
  EXPECT_FALSE(runs[0].strategy.sequence_parallel);
  EXPECT_EQ(runs[0].step_seconds, 20);
  EXPECT_EQ(runs[1].strategy.recompute, spec::Recompute::selective);
  EXPECT_TRUE(runs[1].strategy.sequence_parallel);
  EXPECT_THAT(runs[1].why_not, HasSubstr("step time"));
}

TEST(Measured, SimuMaxsTable) {
  const auto runs = measured_runs(parse_table("case,real_ms,real_alloc_GiB\n"
                                              "llama3_70b_l12_tp4_pp1_dp2_mbc4_cef,400,39\n"
                                              "llama3_405b_l4_tp1_cp8_pp1_dp1_seq32768_mbc4_cef,2000,139\n"
                                              "deepseekv2_tp1_ep4_pp2_dp4_l4_mbc4_cef,282,44\n",
                                              "b.csv"));
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].why_not, "");
  EXPECT_EQ(runs[0].model.layers, 12);
  EXPECT_EQ(runs[0].model.hidden, 8192);
  EXPECT_EQ(runs[0].model.key_heads(), 8);
  EXPECT_EQ(runs[0].model.sequence, 4096);
  EXPECT_EQ(runs[0].devices, 8);
  EXPECT_EQ(runs[0].strategy.global_batch, 8);
  EXPECT_TRUE(runs[0].strategy.sequence_parallel);
  EXPECT_DOUBLE_EQ(runs[0].step_seconds, 0.4);
  EXPECT_DOUBLE_EQ(runs[0].peak_bytes, 39.0 * (1 << 30));
  EXPECT_EQ(runs[1].why_not, "");
  EXPECT_EQ(runs[1].strategy.context, 8);
  EXPECT_EQ(runs[1].devices, 8);
  EXPECT_EQ(runs[1].model.sequence, 32768);
  EXPECT_THAT(runs[2].why_not, HasSubstr("latent attention"));
}

TEST(Measured, SailorsTable) {
  const auto runs = measured_runs(parse_table("model,gpus,gbs,mbs,dp,pp,tp,iter_s,peak_mem_bytes\n"
                                              "OPT-350,64,1024,8,4,4,4,2.7,25140658176\n"
                                              "BLOOM,8,8,1,1,2,4,1,1\n",
                                              "s.csv"));
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].why_not, "");
  EXPECT_EQ(runs[0].strategy.data, 4);
  EXPECT_EQ(runs[0].strategy.micro_batch, 8);
  EXPECT_TRUE(runs[0].peak_has_reserve);
  EXPECT_THAT(runs[1].why_not, HasSubstr("'BLOOM'"));
  const Accuracy all = accuracies(validate_runs(runs, "alps")).back();
  EXPECT_EQ(all.predicted, 1);
  EXPECT_TRUE(all.memory_mean_absolute_error.has_value());
}

// The columns of validation/throughput.csv, changed one by one.
class Published : public testing::Test {
 protected:
  MeasuredRun read(const std::map<std::string, std::string>& changes, const std::vector<std::string>& without = {},
                   const MeasuredOptions& options = {}) {
    std::map<std::string, std::string> cells = {
        {"source", "test"},      {"system", "Frontier"},   {"machine", "lumi"},   {"gpu", "MI250X"},
        {"gpu_count", "16"},     {"precision", "bf16"},    {"model", "M"},        {"layers", "8"},
        {"hidden", "1024"},      {"heads", "16"},          {"kv_heads", "16"},    {"ffn_hidden", "4096"},
        {"seq_len", "2048"},     {"vocab", "50304"},       {"gated_mlp", "no"},   {"embedding_norm", "no"},
        {"dropout", "0.1"},      {"tp", "2"},              {"pp", "2"},           {"vpp", "1"},
        {"cp", "1"},             {"zero_stage", "1"},      {"micro_batch", "1"},  {"global_batch", "64"},
        {"recompute", "full"},   {"sequence_parallel", "no"}, {"iteration_s", "2.5"}};
    for (const auto& [column, text] : changes) cells[column] = text;
    for (const std::string& column : without) cells.erase(column);
    std::string header, row;
    for (const auto& [column, text] : cells) {
      header += (header.empty() ? "" : ",") + column;
      row += (row.empty() ? "" : ",") + text;
    }
    return measured_runs(parse_table(header + "\n" + row + "\n", "runs.csv"), options).at(0);
  }
};

TEST_F(Published, ColumnsSayAllOfARow) {
  const MeasuredRun run = read({{"embedding_norm", "yes"}, {"gated_mlp", "yes"}});
  EXPECT_EQ(run.why_not, "");
  EXPECT_EQ(run.assumed, "");
  EXPECT_EQ(run.machine, "lumi");
  EXPECT_EQ(run.model.dropout, 0.1);
  EXPECT_TRUE(run.model.embedding_norm);
  EXPECT_TRUE(run.model.gated_mlp);
}

TEST_F(Published, EmptyCellsAreNotFilled) {
  for (const char* column : {"layers", "hidden", "heads", "seq_len", "tp", "pp",
                             "micro_batch", "global_batch", "gpu_count", "recompute"}) {
    EXPECT_THAT(read({{column, ""}}).why_not, HasSubstr(std::string(column) + " is not known"));
  }
}

TEST_F(Published, EmptyCellsOfLittleWeightAreAssumedAndSaid) {
  const MeasuredRun run = read({{"vocab", ""}, {"kv_heads", ""}, {"ffn_hidden", ""}});
  EXPECT_EQ(run.why_not, "");
  EXPECT_EQ(run.assumed, "vocab = 50304, ffn_hidden = 4096, kv_heads = 16");
}

TEST_F(Published, ColumnsThatATableLacksAreAssumedAndSaid) {
  const MeasuredRun run = read({}, {"machine", "gated_mlp", "dropout"});
  EXPECT_EQ(run.why_not, "");
  EXPECT_EQ(run.machine, "frontier");
  EXPECT_EQ(run.assumed, "gated_mlp = false, dropout = 0.1");
}

TEST_F(Published, ARowWithoutATimeIsNotPredicted) {
  for (const char* text : {"", "0", "-1"}) {
    const MeasuredRun run = read({{"iteration_s", text}});
    EXPECT_THAT(run.why_not, HasSubstr("neither step time nor tokens a second"));
    const Accuracy all = accuracies(validate_runs({run}, "")).back();
    EXPECT_EQ(all.rows, 1);
    EXPECT_EQ(all.predicted, 0);
    EXPECT_EQ(all.mean_absolute_error, 0);
  }
}

TEST_F(Published, AnUnknownSystemIsKnownByItsDevice) {
  const auto machine = [&](const char* device) {
    return read({{"system", "somewhere"}, {"gpu", device}}, {"machine"});
  };
  EXPECT_EQ(machine("GH200").machine, "alps");
  EXPECT_EQ(machine("GB200").machine, "gb200-nvl72");
  EXPECT_EQ(machine("NVIDIA H200 141GB").machine, "h200");
  EXPECT_EQ(machine("H100-SXM-80GB").machine, "dgx-h100");
  EXPECT_EQ(machine("H100-SXM-80GB").assumed, "machine = dgx-h100 (by the device's name)");
  EXPECT_EQ(machine("TPU v5p").machine, "");
  EXPECT_EQ(accuracies(validate_runs({machine("TPU v5p")}, "")).back().predicted, 0);
}

TEST_F(Published, EveryMachineOfASystemIsShipped) {
  for (const char* source : {"llm-foundry", "nanotron", "nanotron/old_bench", "torchtitan", "NeMo", "AuroraGPT", "MLPerf"}) {
    for (const char* device : {"A100-SXM-80GB", "A100-SXM-40GB", "H100-SXM-80GB", "H200", "B200", "GB200", "MI300X"}) {
      const MeasuredRun run = read({{"source", source}, {"system", ""}, {"gpu", device}}, {"machine"});
      ASSERT_NE(run.machine, "");
      EXPECT_NO_THROW(spec::load_machine(run.machine));
    }
  }
}

TEST_F(Published, LlamasHaveAGateWhateverTheirWidth) {
  EXPECT_TRUE(read({{"model", "Llama2-7B"}, {"ffn_hidden", "2752"}}, {"gated_mlp"}).model.gated_mlp);
  EXPECT_FALSE(read({{"model", "GPT3-5B"}}, {"gated_mlp"}).model.gated_mlp);
}

TEST_F(Published, ARateIsTakenWhereItsConventionIsKnown) {
  const std::map<std::string, std::string> row = {{"iteration_s", ""}, {"tflops_per_gpu", "50"}, {"notes", ""}};
  auto changed = row;
  EXPECT_THAT(read(changed).why_not, HasSubstr("which FLOPs"));
  changed["notes"] = "hardware FLOP/s";
  const MeasuredRun hardware = read(changed);
  EXPECT_EQ(hardware.why_not, "");
  changed["notes"] = "model FLOP/s (MFU)";
  const MeasuredRun model = read(changed);
  EXPECT_GT(hardware.step_seconds, 1.2 * model.step_seconds);  // the layers' recomputation is a third more
  EXPECT_LT(hardware.step_seconds, 1.34 * model.step_seconds);
  changed["recompute"] = "none";
  changed["notes"] = "";
  EXPECT_DOUBLE_EQ(read(changed).step_seconds, model.step_seconds);
  EXPECT_THAT(read(changed).assumed, HasSubstr("tflops_per_gpu"));
}

TEST_F(Published, AnUnknownRecomputationIsTakenWhenTold) {
  MeasuredOptions options;
  options.unknown_recompute = spec::Recompute::selective;
  const MeasuredRun run = read({{"recompute", ""}}, {}, options);
  EXPECT_EQ(run.why_not, "");
  EXPECT_EQ(run.strategy.recompute, spec::Recompute::selective);
  EXPECT_EQ(run.assumed, "recompute = selective");
  EXPECT_EQ(read({{"recompute", "none"}}, {}, options).strategy.recompute, spec::Recompute::none);
}

TEST_F(Published, EightBitsNeedUnitsForThem) {
  const auto seconds = [&](const char* precision, const char* machine) -> double {
    const auto runs = validate_runs({read({{"precision", precision}, {"hidden", "8192"}, {"heads", "64"}})}, machine);
    return runs[0].prediction ? runs[0].prediction->step_seconds : 0;
  };
  const double wide = seconds("bf16", "dgx-h100"), narrow = seconds("fp8 (TE)", "dgx-h100");
  EXPECT_LT(narrow, 0.9 * wide);
  EXPECT_GT(narrow, 0.4 * wide);
  const auto refused = validate_runs({read({{"precision", "fp8"}})}, "selene");
  EXPECT_THAT(refused[0].run.why_not, HasSubstr("peak_fp8_tflops"));
  EXPECT_THAT(read({{"precision", "nvfp4"}}).why_not, HasSubstr("not modelled"));
}

TEST_F(Published, SharedSequencesArePredicted) {
  const MeasuredRun run = read({{"cp", "2"}});
  EXPECT_EQ(run.why_not, "");
  EXPECT_EQ(run.strategy.context, 2);
  EXPECT_THAT(run.assumed, HasSubstr("ring"));
  EXPECT_EQ(run.strategy.data * 2, read({}).strategy.data);
}

TEST_F(Published, ExpertsAreAsWideAsTheRowSays) {
  const std::map<std::string, std::string> mixture = {{"experts", "8"}, {"topk", "2"}, {"ep", "4"}, {"ffn_hidden", "512"}};
  const MeasuredRun run = read(mixture);
  EXPECT_EQ(run.why_not, "");
  EXPECT_EQ(run.model.experts, 8);
  EXPECT_EQ(run.model.experts_per_token, 2);
  EXPECT_EQ(run.model.expert_ffn(), 512);
  EXPECT_EQ(run.strategy.expert, 4);
  auto unknown = mixture;
  unknown["topk"] = "";
  EXPECT_THAT(read(unknown).why_not, HasSubstr("topk is not known"));
  auto latent = mixture;
  latent["model"] = "DeepSeek-V3";
  EXPECT_THAT(read(latent).why_not, HasSubstr("latent attention"));
}

TEST_F(Published, ShardedGradientsArePredicted) { EXPECT_EQ(read({{"zero_stage", "2"}}).strategy.zero_stage, 2); }

constexpr const char* kScalingHeader =
    "source,machine,model,layers,hidden,heads,seq_len,vocab,tp,pp,micro_batch,zero_stage,recompute,base_gpu_count,"
    "base_batch,gpu_count,global_batch,efficiency\n";

TEST(MeasuredScaling, WeakScalingLosesLittleAndStrongItsBubble) {
  const auto rows = validate_scaling(parse_table(std::string(kScalingHeader) +
                                                     "s,frontier,M,16,8192,64,2048,50304,8,4,1,1,full,32,64,256,512,0.9\n"
                                                     "s,frontier,M,16,8192,64,2048,50304,8,4,1,1,full,32,64,256,64,0.9\n"
                                                     "s,frontier,M,16,8192,64,2048,50304,3,4,1,1,full,32,64,256,64,0.9\n"
                                                     "s,frontier,M,16,8192,64,2048,50304,8,4,1,1,full,32,64,256,64,\n",
                                                 "scaling.csv"),
                                     "");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_GT(rows[0].predicted, 0.85);
  EXPECT_LE(rows[0].predicted, 1.0);
  // 64 micro-batches become 8 a replica: of four stages' bubble alone (8 / 11) / (64 / 67) is left.
  EXPECT_LT(rows[1].predicted, 0.762);
  EXPECT_GT(rows[1].predicted, 0.5);
  EXPECT_THAT(rows[2].why_not, HasSubstr("tensor = 3"));
  EXPECT_THAT(rows[3].why_not, HasSubstr("efficiency"));
  const Accuracy all = accuracies(rows).back();
  EXPECT_EQ(all.rows, 4);
  EXPECT_EQ(all.predicted, 2);
}

}  // namespace
}  // namespace ridgeline::simulate
