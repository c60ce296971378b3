// The readers of recorded tables, on invented rows.
#include "simulate/measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
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

// The columns of validation/throughput.csv, changed one by one.
class Published : public testing::Test {
 protected:
  MeasuredRun read(const std::map<std::string, std::string>& changes, const std::vector<std::string>& without = {}) {
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
    return measured_runs(parse_table(header + "\n" + row + "\n", "runs.csv")).at(0);
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

TEST_F(Published, ShardedGradientsArePredicted) { EXPECT_EQ(read({{"zero_stage", "2"}}).strategy.zero_stage, 2); }

}  // namespace
}  // namespace ridgeline::simulate
