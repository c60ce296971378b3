#include "simulate/measured.h"

#include <array>

#include "core/error.h"

namespace ridgeline::simulate {
namespace {

using Rows = std::vector<MeasuredRun>;

// Which shipped machine (and software stack on it) a row of another's words means; the first that matches.
struct SystemName {
  const char* source;
  const char* system;
  const char* gpu;
  const char* machine;
};
constexpr std::array<SystemName, 16> kSystems = {{{"FORGE", "Frontier", "", "frontier-neox"},
                                                  {"", "Frontier", "", "frontier"},
                                                  {"", "LUMI", "", "lumi"},
                                                  {"", "Selene", "", "selene"},
                                                  {"", "Perlmutter", "40", "perlmutter-40"},
                                                  {"", "Perlmutter", "", "perlmutter-80"},
                                                  {"", "Polaris", "", "polaris"},
                                                  {"AuroraGPT", "", "", "aurora-torchtitan"},
                                                  {"", "Aurora", "", "aurora"},
                                                  {"", "Alps", "", "alps"},
                                                  {"", "Jean Zay (8x A100", "", "jean-zay-a100"},
                                                  {"llm-foundry", "", "A100-SXM-80", "a100-foundry"},
                                                  {"llm-foundry", "", "A100-SXM-40", "a100-foundry-40"},
                                                  {"llm-foundry", "", "H100", "h100-foundry"},
                                                  {"", "DGX H100", "H100", "dgx-h100"},
                                                  {"", "Eos class", "H100", "dgx-h100"}}};

std::string machine_of(const std::string& source, const std::string& system, const std::string& gpu) {
  const auto holds = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  for (const SystemName& known : kSystems) {
    if (holds(source, known.source) && holds(system, known.system) && holds(gpu, known.gpu)) return known.machine;
  }
  return "";
}

// Megatron's dropout, which runs for speed leave on.
constexpr double kUsualDropout = 0.1;
// GPT-2's, padded. It changes a large model's step by a per cent or two.
constexpr int64_t kUsualVocabulary = 50304;

// Derives `data` and says what is wrong in place of throwing.
void settle(MeasuredRun& run) {
  if (!run.why_not.empty()) return;
  if (run.step_seconds <= 0) {
    run.why_not = kTimeNotKnown;
    return;
  }
  try {
    spec::Strategy strategy = run.strategy;
    spec::validate(run.model);
    spec::derive_data(strategy, run.model, run.devices);
    run.strategy = strategy;
  } catch (const InputError& error) {
    run.why_not = error.what();
  }
}

void need(MeasuredRun& run, const std::optional<int64_t>& value, int64_t& target, const char* column) {
  if (value) {
    target = *value;
  } else if (run.why_not.empty()) {
    run.why_not = fmt::format("{} is not known", column);
  }
}

bool is_yes(const std::string& text) { return text.starts_with("yes") || text == "1" || text == "true"; }

void read_recompute(const std::string& text, MeasuredRun& run) {
  spec::Recompute& recompute = run.strategy.recompute;
  if (text == "none" || text == "no") {
    recompute = spec::Recompute::none;
  } else if (text == "selective") {
    recompute = spec::Recompute::selective;
  } else if (text == "full") {
    recompute = spec::Recompute::full;
  } else if (run.why_not.empty()) {
    run.why_not = text.empty() ? "recompute is not known" : fmt::format("recompute '{}' is not modelled", text);
  }
}

void read_published_model(const Table& table, size_t row, MeasuredRun& run) {
  spec::ModelSpec& model = run.model;
  need(run, table.count(row, "layers"), model.layers, "layers");
  need(run, table.count(row, "hidden"), model.hidden, "hidden");
  need(run, table.count(row, "heads"), model.heads, "heads");
  need(run, table.count(row, "seq_len"), model.sequence, "seq_len");
  // What changes a step by little has a usual form, which stands in and is said.
  const auto given = [&](const char* column) { return !table.text(row, column).empty(); };
  const auto assume = [&](const char* column, const auto& value) {
    if (given(column)) return;
    run.assumed += fmt::format("{}{} = {}", run.assumed.empty() ? "" : ", ", column, value);
  };
  model.vocabulary = table.count(row, "vocab").value_or(kUsualVocabulary);
  model.ffn_hidden = table.count(row, "ffn_hidden").value_or(0);
  model.kv_heads = table.count(row, "kv_heads").value_or(0);
  model.embedding_norm = is_yes(table.text(row, "embedding_norm"));
  // Published rows whose MLP is not 4 wide and whose heads are grouped are of the Llama family.
  model.gated_mlp = given("gated_mlp") ? is_yes(table.text(row, "gated_mlp"))
                                       : model.ffn() != 4 * model.hidden && model.key_heads() != model.heads;
  const double usual = model.gated_mlp ? 0 : kUsualDropout;
  model.dropout = model.attention_dropout = table.number(row, "dropout").value_or(usual);
  assume("vocab", model.vocabulary);
  assume("ffn_hidden", model.ffn());
  assume("kv_heads", model.key_heads());
  assume("gated_mlp", model.gated_mlp);
  assume("dropout", model.dropout);
  if (table.number(row, "experts").value_or(0) > 1 && run.why_not.empty()) run.why_not = "experts are not modelled";
}

void read_published_strategy(const Table& table, size_t row, MeasuredRun& run) {
  spec::Strategy& strategy = run.strategy;
  need(run, table.count(row, "gpu_count"), run.devices, "gpu_count");
  need(run, table.count(row, "tp"), strategy.tensor, "tp");
  need(run, table.count(row, "pp"), strategy.pipeline, "pp");
  need(run, table.count(row, "micro_batch"), strategy.micro_batch, "micro_batch");
  need(run, table.count(row, "global_batch"), strategy.global_batch, "global_batch");
  strategy.virtual_pipeline = table.count(row, "vpp").value_or(1);
  const double zero = table.number(row, "zero_stage").value_or(0);
  strategy.zero_stage = static_cast<int64_t>(zero);
  if (table.number(row, "cp").value_or(1) > 1 && run.why_not.empty()) run.why_not = "context axis is not modelled";
  read_recompute(table.text(row, "recompute"), run);
  strategy.sequence_parallel = is_yes(table.text(row, "sequence_parallel")) && strategy.tensor > 1;
  const std::string attention = table.text(row, "flash_attention");
  run.knows_attention = !attention.empty();
  run.fused_attention = is_yes(attention);
  const std::string precision = table.text(row, "precision");
  run.compute = precision.starts_with("fp16") ? spec::Precision::fp16 : spec::Precision::bf16;
  if (precision.find("fp8") != std::string::npos && run.why_not.empty()) run.why_not = "fp8 is not modelled";
}

double published_seconds(const Table& table, size_t row, const MeasuredRun& run) {
  if (const auto seconds = table.number(row, "iteration_s")) return *seconds;
  const auto rate = table.number(row, "tokens_per_s_per_gpu");
  if (!rate || *rate <= 0 || run.devices == 0) return 0;
  return static_cast<double>(run.strategy.global_batch * run.model.sequence) /
         (*rate * static_cast<double>(run.devices));
}

Rows published(const Table& table) {
  Rows runs;
  for (size_t row = 0; row < table.rows(); ++row) {
    MeasuredRun run;
    run.source = table.text(row, "source");
    run.label = fmt::format("{} {}", table.where(row), table.text(row, "model"));
    run.machine = table.has("machine") ? table.text(row, "machine")
                                       : machine_of(run.source, table.text(row, "system"), table.text(row, "gpu"));
    read_published_model(table, row, run);
    read_published_strategy(table, row, run);
    run.step_seconds = published_seconds(table, row, run);
    settle(run);
    runs.push_back(std::move(run));
  }
  return runs;
}

// vTrain's artefact: Megatron-DeepSpeed on DGX A100 nodes, GPT-2's vocabulary padded, full recomputation, fp16.
Rows vtrain(const Table& table) {
  Rows runs;
  for (size_t row = 0; row < table.rows(); ++row) {
    MeasuredRun run;
    spec::Strategy& strategy = run.strategy;
    need(run, table.count(row, "# GPUs"), run.devices, "# GPUs");
    run.source = run.devices > 8 ? "vTrain, several nodes" : "vTrain, one node";
    run.label = table.where(row);
    run.machine = "a100-vtrain";
    run.model.vocabulary = 51200;
    run.model.dropout = run.model.attention_dropout = kUsualDropout;
    need(run, table.count(row, "hidden size"), run.model.hidden, "hidden size");
    need(run, table.count(row, "attention heads"), run.model.heads, "attention heads");
    need(run, table.count(row, "# layers"), run.model.layers, "# layers");
    need(run, table.count(row, "sequence length"), run.model.sequence, "sequence length");
    need(run, table.count(row, "tensor parallelism"), strategy.tensor, "tensor parallelism");
    need(run, table.count(row, "pipeline parallelism"), strategy.pipeline, "pipeline parallelism");
    need(run, table.count(row, "micro batch"), strategy.micro_batch, "micro batch");
    need(run, table.count(row, "global batch"), strategy.global_batch, "global batch");
    strategy.recompute = spec::Recompute::full;
    run.compute = spec::Precision::fp16;
    run.step_seconds = table.number(row, "iteration time (ms)").value_or(0) * 1e-3;
    settle(run);
    runs.push_back(std::move(run));
  }
  return runs;
}

struct SelenePoint {
  const char* model;
  int64_t layers, hidden, heads, pipeline, chunks, micro_batch, global_batch, devices;
};
// Korthikanti et al. 2022 (arXiv 2205.05198), table 3.
constexpr std::array<SelenePoint, 4> kSelene = {{{"megatron-22B", 48, 6144, 64, 1, 1, 4, 4, 8},
                                                 {"gpt3-175B", 96, 12288, 96, 8, 3, 1, 64, 64},
                                                 {"turing-530B", 105, 20480, 128, 35, 3, 1, 280, 280},
                                                 {"megatron-1T", 128, 25600, 160, 64, 1, 1, 512, 512}}};

// Two points a row: full recomputation, and selective with sequence parallelism.
Rows selene(const Table& table) {
  Rows runs;
  for (size_t row = 0; row < table.rows(); ++row) {
    const std::string name = table.text(row, "model");
    for (const SelenePoint& point : kSelene) {
      if (name != point.model) continue;
      for (const bool is_full : {true, false}) {
        MeasuredRun run;
        run.source = "Korthikanti et al. 2022, Selene";
        run.label = fmt::format("{} {} {}", table.where(row), name, is_full ? "full" : "selective");
        run.machine = "selene";
        run.model.layers = point.layers;
        run.model.hidden = point.hidden;
        run.model.heads = point.heads;
        run.model.sequence = 2048;
        run.model.vocabulary = 51200;
        run.model.dropout = run.model.attention_dropout = kUsualDropout;
        run.strategy.virtual_pipeline = point.chunks;
        run.strategy.tensor = 8;
        run.strategy.pipeline = point.pipeline;
        run.strategy.micro_batch = point.micro_batch;
        run.strategy.global_batch = point.global_batch;
        run.strategy.recompute = is_full ? spec::Recompute::full : spec::Recompute::selective;
        run.strategy.sequence_parallel = !is_full;
        run.devices = point.devices;
        run.compute = spec::Precision::fp16;
        run.step_seconds = table.number(row, is_full ? "iter_full_s" : "iter_seqsel_s").value_or(0);
        settle(run);
        runs.push_back(std::move(run));
      }
    }
  }
  return runs;
}

}  // namespace

std::vector<MeasuredRun> measured_runs(const Table& table) {
  if (table.has("iter_seqsel_s")) return selene(table);
  if (table.has("# GPUs") && table.has("iteration time (ms)")) return vtrain(table);
  if (table.has("source") && table.has("gpu_count") && table.has("global_batch")) return published(table);
  throw InputError(
      "{}: this table's columns are not known: expected those of validation/throughput.csv (source, system, gpu, "
      "gpu_count, "
      "..., global_batch, ..., iteration_s)",
      table.file_name());
}

cost::Recipe recipe_of(const MeasuredRun& run, const spec::Machine& machine) {
  cost::Recipe recipe = cost::recipe(machine.stack.program);
  if (run.knows_attention) recipe.fused_attention = run.fused_attention;
  return recipe;
}

}  // namespace ridgeline::simulate
