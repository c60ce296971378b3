// Megatron-LM's arguments in shell scripts.
#include <gmock/gmock.h>

#include "spec/foreign_fixture.h"
#include "spec/foreign_shell.h"
#include "spec/foreign_shell_arithmetic.h"

namespace ridgeline::spec {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> words(const std::string& text, size_t command = 0) {
  const ShellScript script = read_shell_script(text, "s");
  std::vector<std::string> list;
  if (command < script.commands.size()) {
    for (const ShellWord& word : script.commands[command]) list.push_back(word.text);
  }
  return list;
}

TEST(Shell, QuotesContinuationsAndComments) {
  EXPECT_THAT(words("a 'b  c' \"d # e\" f\\ g \\\n  h # i\nj"), ElementsAre("a", "b  c", "d # e", "f g", "h"));
  EXPECT_THAT(words("a ''"), ElementsAre("a", ""));
  EXPECT_THAT(words("a\r\nb\r\n", 1), ElementsAre("b"));
  EXPECT_THAT(words("run x 2>&1 | tee log"), ElementsAre("run", "x"));
  EXPECT_THAT(words("cat <<'END'\nit's \"open\nEND\nrun y\n", 1), ElementsAre("run", "y"));
}

TEST(Shell, VariablesAreExpandedAsBashDoes) {
  EXPECT_THAT(words("A='1 2'\nrun $A \"$A\" ${A}3 x$A"), ElementsAre("run", "1", "2", "1 2", "1", "23", "x1", "2"));
  EXPECT_THAT(words("A=(1 '2 3' # four\n 5)\nrun ${A[@]} \"${A[@]}\" $A"),
              ElementsAre("run", "1", "2", "3", "5", "1", "2 3", "5", "1"));
  EXPECT_THAT(words("A=1\nA+=2\nexport B=$A C=3\nrun $B $C"), ElementsAre("run", "12", "3"));
  EXPECT_THAT(words("A=(1)\nA+=(2)\nrun \"${A[@]}\""), ElementsAre("run", "1", "2"));
  EXPECT_THAT(words("E=\nrun $E \"$E\" b"), ElementsAre("run", "", "b"));
  EXPECT_THAT(words("N=4\nrun $((N * 2 + (3 - 1) / 2)) $(( $N % 3 ))"), ElementsAre("run", "9", "1"));
  EXPECT_THAT(words("run ${A:-x} ${B:-${C:-y}}"), ElementsAre("run", "x", "y"));
}

TEST(Shell, WhatOnlyAShellKnowsIsUnknown) {
  for (const char* text : {"$A", "${A}", "$1", "$(hostname -s)", "`date`", "${A%.*}", "$((A + 1))", "$((1 / 0))",
                           "$((9223372036854775807 + 1))", "${A:+${B}}"}) {
    const ShellScript script = read_shell_script(std::string("run ") + text, "s");
    ASSERT_EQ(script.commands.size(), 1u) << text;
    ASSERT_EQ(script.commands[0].size(), 2u) << text;
    EXPECT_EQ(script.commands[0][1].unknown, text);
  }
}

TEST(Shell, ConditionsAndDefaultsAreNoted) {
  const ShellScript script = read_shell_script("if [ $X = 1 ]; then\n  TP=4\nfi\nrun $TP ${N:-2}\n", "s");
  EXPECT_THAT(script.notes, ElementsAre("s:2: TP is set under a condition or in a loop; '4' is taken",
                                        "s:4: N is not set in the file; its default '2' is taken"));
}

TEST(Shell, HostileScriptsAreRefused) {
  const auto error = [](const std::string& text) -> std::string {
    try {
      read_shell_script(text, "s");
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error("a\nb 'c"), HasSubstr("s:2: a quote (') does not end"));
  EXPECT_THAT(error("b \"c\n"), HasSubstr("s:1: a quote (\") does not end"));
  EXPECT_THAT(error("A=(b c\n"), HasSubstr("s:1: the list does not end"));
  EXPECT_THAT(error("b $(c"), HasSubstr("a substitution does not end"));
  EXPECT_THAT(error("cat <<E\nx\n"), HasSubstr("s:2: the here-document does not end"));
  std::string doubling = "A=xxxxxxxx\n", empty = "A=('' '')\n", nested;
  for (int i = 0; i < 64; ++i) doubling += "A=$A$A\n", empty += "A=(\"${A[@]}\" \"${A[@]}\")\n";
  EXPECT_THAT(error(doubling), HasSubstr("expand to more than 4 MiB"));
  EXPECT_THAT(error(empty), HasSubstr("expand to more than 4 MiB"));
  for (int i = 0; i < 100'000; ++i) nested += "${A:-";
  EXPECT_THAT(error(nested), HasSubstr("nest deeper than 32 levels"));
  const auto nothing = [](const std::string&) { return std::optional<std::string>(); };
  EXPECT_EQ(shell_arithmetic(std::string(100'000, '('), nothing), std::nullopt);
  EXPECT_EQ(shell_arithmetic("-(2 - 5) * 4", nothing), 12);
}

TEST_F(Foreign, MegatronScriptOfALlama) {
  const ForeignConfig config = fixture("megatron-llama.sh");
  const TrainSpec& spec = config.spec;
  EXPECT_EQ(spec.model.layers, 32);
  EXPECT_EQ(spec.model.kv_heads, 8);
  EXPECT_EQ(spec.model.norm, Norm::rms_norm);
  EXPECT_EQ(spec.model.biases, Biases::none);
  EXPECT_TRUE(spec.model.gated_mlp);
  EXPECT_FALSE(spec.model.tied);
  EXPECT_EQ(spec.strategy.tensor, 2);
  EXPECT_EQ(spec.strategy.pipeline, 2);
  EXPECT_TRUE(spec.strategy.sequence_parallel);
  EXPECT_EQ(spec.strategy.zero_stage, 1);
  EXPECT_EQ(spec.strategy.recompute, Recompute::selective);
  EXPECT_EQ(spec.strategy.global_batch, 128);  // by arithmetic
  EXPECT_EQ(spec.precision.compute, Precision::bf16);
  EXPECT_EQ(spec.optimizer.beta2, 0.95);
  EXPECT_EQ(config.devices, 16);
  EXPECT_EQ(spec.strategy.context, 2);
  EXPECT_EQ(meaning(config.understood, "--context-parallel-size"), "strategy.context = 2");
  EXPECT_THAT(config.assumed, Contains("2 data parallel replicas (16 devices)"));
  EXPECT_THAT(config.assumed, Contains(HasSubstr("NNODES is not set in the file; its default '2' is taken")));
  EXPECT_EQ(meaning(config.understood, "--num-layers"), "model.layers = 32");
}

TEST_F(Foreign, MegatronDeepSpeedScriptThroughEval) {
  const ForeignConfig config = fixture("megatron-deepspeed-gpt.sh");
  EXPECT_EQ(config.spec.model.hidden, 6144);
  EXPECT_EQ(config.spec.model.vocabulary, 50257);
  EXPECT_EQ(config.spec.model.dropout, 0.1);
  EXPECT_EQ(config.spec.strategy.recompute, Recompute::full);
  EXPECT_EQ(config.spec.training.steps, 10'000);
  EXPECT_EQ(config.devices, 16);
  EXPECT_NO_THROW(require_trainable(config.spec.model));
}

const std::string kArguments = "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --seq-length 32 ";

TEST_F(Foreign, MegatronErrorsNameTheLine) {
  const auto of = [&](const std::string& more) { return error("s.sh", "x\npretrain_gpt.py " + kArguments + more); };
  EXPECT_EQ(of(""), "no error");
  EXPECT_THAT(of("--num-layers many"), HasSubstr("s.sh:2: --num-layers = many: expected an integer"));
  EXPECT_THAT(of("--num-layers $LAYERS"),
              HasSubstr("s.sh:2: --num-layers depends on $LAYERS, which the file does not hold"));
  EXPECT_THAT(of("--normalization Group"), HasSubstr("--normalization = Group: expected LayerNorm or RMSNorm"));
  EXPECT_THAT(of("--moe-layer-freq 2 --num-experts 4"), HasSubstr("--moe-layer-freq = 2: expected an integer 1 to 1"));
  EXPECT_THAT(of("--hidden-size 9000000000"), HasSubstr("s.sh:2: --hidden-size = 9000000000: expected"));
  EXPECT_THAT(of("--zero-stage 4"), HasSubstr("s.sh:2: --zero-stage = 4: expected an integer 0 to 3"));
  EXPECT_THAT(error("s.sh", "echo hello\n"), HasSubstr("no command with arguments of Megatron-LM found"));
  EXPECT_THAT(
      error("s.sh", "torchrun --nproc-per-node 6 pretrain_gpt.py " + kArguments + "--tensor-model-parallel-size 4"),
      HasSubstr("6 devices cannot be cut in groups of tensor * pipeline = 4 * 1"));
}

TEST_F(Foreign, MegatronLastArgumentWinsAndStagesMayDiffer) {
  const ForeignConfig config =
      read("s.sh", "python pretrain_gpt.py " + kArguments +
                       "--num-layers 12 --pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 2 "
                       "--decoder-last-pipeline-num-layers 4 --recompute-granularity full --recompute-method block "
                       "--recompute-num-layers 2 --swiglu --num-layers-per-virtual-pipeline-stage 1\n");
  EXPECT_EQ(config.spec.model.layers, 12);
  EXPECT_THAT(config.assumed, Contains(HasSubstr("--num-layers stands there again and wins")));
  EXPECT_THAT(config.spec.strategy.stage_layers, ElementsAre(2, 3, 3, 4));
  EXPECT_EQ(config.spec.model.ffn_hidden, 128);  // 8/3 of 64 is 170, in steps of 64
  EXPECT_THAT(meaning(config.beyond, "--recompute-num-layers"), HasSubstr("2 layers a stage"));
  EXPECT_THAT(meaning(config.beyond, "--num-layers-per-virtual-pipeline-stage"), HasSubstr("interleaved 1F1B"));
  EXPECT_THAT(config.missing, Contains(HasSubstr("model.vocabulary")));
}

TEST_F(Foreign, MegatronInterleavingIsTheStrategys) {
  const std::string command = "python pretrain_gpt.py " + kArguments + "--pipeline-model-parallel-size 2 ";
  ForeignConfig config = read("s.sh", command + "--num-layers-per-virtual-pipeline-stage 2\n");
  EXPECT_EQ(config.spec.strategy.virtual_pipeline, 2);
  EXPECT_EQ(meaning(config.understood, "--num-layers-per-virtual-pipeline-stage"), "strategy.virtual_pipeline = 2");
  config = read("s.sh", command + "--num-virtual-stages-per-pipeline-rank 4\n");
  EXPECT_EQ(config.spec.strategy.virtual_pipeline, 4);
  EXPECT_THAT(error("s.sh", command + "--num-layers-per-virtual-pipeline-stage 3\n"),
              HasSubstr("--num-layers-per-virtual-pipeline-stage = 3: expected a number that divides the 4 layers"));
}

TEST_F(Foreign, BareArgumentsAndMixtures) {
  const ForeignConfig config = read(
      "arguments.txt",
      "--num-layers 8\n--hidden-size 64 --num-attention-heads 4\n--seq-length 32\n--vocab-size 99\n--num-experts 8\n"
      "--moe-router-topk 2 --moe-ffn-hidden-size 32 --expert-model-parallel-size 4 --micro-batch-size 1\n");
  EXPECT_EQ(config.spec.model.experts, 8);
  EXPECT_EQ(config.spec.model.expert_ffn_hidden, 32);
  EXPECT_EQ(config.spec.strategy.expert, 4);
}

}  // namespace
}  // namespace ridgeline::spec
