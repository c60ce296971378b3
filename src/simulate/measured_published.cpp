// Published runs in the project's own columns (validation/throughput.csv).
#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "cost/flops.h"
#include "simulate/measured_rows.h"
#include "simulate/measured_systems.h"

namespace ridgeline::simulate {
namespace {

// GPT-2's, padded. It changes a large model's step by a per cent or two.
constexpr int64_t kUsualVocabulary = 50304;

bool is_yes(const std::string& text) { return text.starts_with("yes") || text == "1" || text == "true"; }

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return text;
}

bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

void read_recompute(const std::string& text, const MeasuredOptions& options, MeasuredRun& run) {
  spec::Recompute& recompute = run.strategy.recompute;
  if (text.empty() && options.unknown_recompute) {
    recompute = *options.unknown_recompute;
    assume(run, "recompute = " + to_string(recompute));
  } else if (text == "none" || text == "no") {
    recompute = spec::Recompute::none;
  } else if (text == "selective") {
    recompute = spec::Recompute::selective;
  } else if (text == "full") {
    recompute = spec::Recompute::full;
  } else {
    refuse(run, text.empty() ? "recompute is not known" : fmt::format("recompute '{}' is not modelled", text));
  }
}

// Models whose MLP has a gate, by name or by a shape that plain ones do not have.
bool usually_gated(const spec::ModelSpec& model, const std::string& name) {
  const std::string known = lower(name);
  for (const char* family : {"llama", "mistral", "mixtral", "qwen", "deepseek"}) {
    if (holds(known, family)) return true;
  }
  return model.ffn() != 4 * model.hidden && model.key_heads() != model.heads;
}

// Mixtures of experts, whose ffn_hidden is that of one expert. In all layers alike, with none shared, as far as a row
// tells; models that are known to be different are left out.
void read_experts(const Table& table, size_t row, MeasuredRun& run) {
  spec::ModelSpec& model = run.model;
  model.experts = table.count(row, "experts").value_or(0);
  if (model.experts <= 1) model.experts = 0;
  if (model.experts == 0) return;
  if (holds(lower(table.text(row, "model")), "deepseek")) refuse(run, "latent attention is not modelled");
  need(run, table.count(row, "topk"), model.experts_per_token, "topk");
  model.expert_ffn_hidden = model.ffn_hidden;
  model.gated_mlp = true;
  model.biases = spec::Biases::none;
  if (table.text(row, "ep").empty()) assume(run, "ep = 1");
  run.strategy.expert = table.count(row, "ep").value_or(1);
}

void read_published_model(const Table& table, size_t row, MeasuredRun& run) {
  spec::ModelSpec& model = run.model;
  need(run, table.count(row, "layers"), model.layers, "layers");
  need(run, table.count(row, "hidden"), model.hidden, "hidden");
  need(run, table.count(row, "heads"), model.heads, "heads");
  need(run, table.count(row, "seq_len"), model.sequence, "seq_len");
  // What changes a step by little has a usual form, which stands in and is said.
  const auto given = [&](const char* column) { return !table.text(row, column).empty(); };
  const auto stand_in = [&](const char* column, const auto& value) {
    if (!given(column)) assume(run, fmt::format("{} = {}", column, value));
  };
  model.vocabulary = table.count(row, "vocab").value_or(kUsualVocabulary);
  model.ffn_hidden = table.count(row, "ffn_hidden").value_or(0);
  model.kv_heads = table.count(row, "kv_heads").value_or(0);
  model.embedding_norm = is_yes(table.text(row, "embedding_norm"));
  model.gated_mlp =
      given("gated_mlp") ? is_yes(table.text(row, "gated_mlp")) : usually_gated(model, table.text(row, "model"));
  if (model.gated_mlp) {  // the Llama family
    model.tied = false;
    model.norm = spec::Norm::rms_norm;
    model.positions = spec::Positions::rotary;
    model.biases = spec::Biases::none;
  }
  const double usual = model.gated_mlp ? 0 : kUsualDropout;
  model.dropout = model.attention_dropout = table.number(row, "dropout").value_or(usual);
  stand_in("vocab", model.vocabulary);
  stand_in("ffn_hidden", model.ffn());
  stand_in("kv_heads", model.key_heads());
  stand_in("gated_mlp", model.gated_mlp);
  stand_in("dropout", model.dropout);
  read_experts(table, row, run);
}

void read_precision(const std::string& text, MeasuredRun& run) {
  run.compute = text.starts_with("fp16") ? spec::Precision::fp16 : spec::Precision::bf16;
  run.fp8 = holds(text, "fp8");
  if (text.starts_with("fp32") || text.starts_with("tf32")) run.compute = spec::Precision::fp32;
  if (holds(text, "fp4")) refuse(run, fmt::format("precision '{}' is not modelled", text));
}

void read_published_strategy(const Table& table, size_t row, const MeasuredOptions& options, MeasuredRun& run) {
  spec::Strategy& strategy = run.strategy;
  need(run, table.count(row, "gpu_count"), run.devices, "gpu_count");
  need(run, table.count(row, "tp"), strategy.tensor, "tp");
  need(run, table.count(row, "pp"), strategy.pipeline, "pp");
  need(run, table.count(row, "micro_batch"), strategy.micro_batch, "micro_batch");
  need(run, table.count(row, "global_batch"), strategy.global_batch, "global_batch");
  strategy.virtual_pipeline = table.count(row, "vpp").value_or(1);
  const auto is_empty = [&](const char* column) { return table.text(row, column).empty(); };
  if (strategy.pipeline > 1 && is_empty("vpp")) assume(run, "vpp = 1");
  if (is_empty("zero_stage")) assume(run, "zero_stage = 0");
  if (strategy.tensor > 1 && is_empty("sequence_parallel")) assume(run, "sequence_parallel = no");
  const double zero = table.number(row, "zero_stage").value_or(0);
  strategy.zero_stage = static_cast<int64_t>(zero);
  strategy.context = table.count(row, "cp").value_or(1);
  if (strategy.context > 1) assume(run, "context parallelism by a ring");
  read_recompute(table.text(row, "recompute"), options, run);
  strategy.sequence_parallel = is_yes(table.text(row, "sequence_parallel")) && strategy.tensor > 1;
  const std::string attention = table.text(row, "flash_attention");
  run.knows_attention = !attention.empty();
  run.fused_attention = is_yes(attention);
  read_precision(lower(table.text(row, "precision")), run);
}

// Step time from a rate in TFLOP/s, which means something only where its convention is known: without recomputation
// model and hardware FLOPs are the same, else the row has to say which it counts.
double seconds_of_rate(const Table& table, size_t row, MeasuredRun& run) {
  const auto rate = table.number(row, "tflops_per_gpu");
  if (!rate || *rate <= 0 || run.devices == 0) return 0;
  const std::string notes = lower(table.text(row, "notes"));
  const spec::Recompute recompute = run.strategy.recompute;
  const bool is_hardware = holds(notes, "hardware flop");
  const bool is_model = holds(notes, "model flop") || holds(notes, "recompute not counted");
  if (recompute != spec::Recompute::none && is_hardware == is_model) {
    refuse(run, "neither step time nor tokens a second is known, and not which FLOPs tflops_per_gpu counts");
    return 0;
  }
  const cost::PassFlops flops = cost::sample_flops(run.model, recompute);
  const double sample = is_hardware ? flops.hardware_flops() : flops.model_flops();
  assume(run, "step time from tflops_per_gpu");
  return static_cast<double>(run.strategy.global_batch) * sample / (*rate * 1e12 * static_cast<double>(run.devices));
}

double published_seconds(const Table& table, size_t row, MeasuredRun& run) {
  if (const auto seconds = table.number(row, "iteration_s")) return *seconds;
  const auto rate = table.number(row, "tokens_per_s_per_gpu");
  if (!rate) return run.why_not.empty() ? seconds_of_rate(table, row, run) : 0;
  if (*rate <= 0 || run.devices == 0) return 0;
  return static_cast<double>(run.strategy.global_batch * run.model.sequence) /
         (*rate * static_cast<double>(run.devices));
}

void find_machine(const Table& table, size_t row, MeasuredRun& run) {
  run.machine = table.text(row, "machine");
  if (table.has("machine")) return;
  const std::string device = table.text(row, "gpu");
  const SystemMatch match = match_system(run.source, table.text(row, "system"), device);
  run.machine = match.machine;
  if (match.by_device) assume(run, fmt::format("machine = {} (by the device's name)", match.machine));
}

}  // namespace

std::vector<MeasuredRun> published_rows(const Table& table, const MeasuredOptions& options) {
  std::vector<MeasuredRun> runs;
  for (size_t row = 0; row < table.rows(); ++row) {
    MeasuredRun run;
    run.source = table.text(row, "source");
    run.label = fmt::format("{} {}", table.where(row), table.text(row, "model"));
    find_machine(table, row, run);
    read_published_model(table, row, run);
    read_published_strategy(table, row, options, run);
    run.step_seconds = published_seconds(table, row, run);
    settle(run);
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace ridgeline::simulate
