// Tables of other projects, as they ship them: vTrain, Korthikanti et al. as Calculon keeps them, SimuMax, Sailor.
#include <algorithm>
#include <array>
#include <charconv>

#include "core/error.h"
#include "core/text.h"
#include "simulate/measured_rows.h"

namespace ridgeline::simulate {
namespace {

using Rows = std::vector<MeasuredRun>;

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

spec::ModelSpec llama_shape(int64_t hidden, int64_t ffn, int64_t heads, int64_t key_heads) {
  spec::ModelSpec model;
  model.hidden = hidden;
  model.ffn_hidden = ffn;
  model.heads = heads;
  model.kv_heads = key_heads;
  model.vocabulary = 128256;
  model.gated_mlp = true;
  model.tied = false;
  model.norm = spec::Norm::rms_norm;
  model.positions = spec::Positions::rotary;
  model.biases = spec::Biases::none;
  return model;
}

struct SliceModel {  // of public configurations; slices keep fewer layers
  const char* name;
  int64_t hidden, ffn, heads, key_heads;
};
constexpr SliceModel kSliceModels[] = {{"llama3_70b", 8192, 28672, 64, 8}, {"llama3_405b", 16384, 53248, 128, 8}};

// "llama3_70b_l12_tp1_pp2_dp4_mbc4_cef": numbers by the letters before them.
int64_t part_of_case(const std::string& name, const std::string& letters, int64_t otherwise) {
  for (size_t start = name.find('_'); start != std::string::npos; start = name.find('_', start + 1)) {
    const std::string_view part = std::string_view(name).substr(start + 1, name.find('_', start + 1) - start - 1);
    if (!part.starts_with(letters) || part.size() == letters.size()) continue;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(part.data() + letters.size(), part.data() + part.size(), value);
    if (error == std::errc() && end == part.data() + part.size() && value > 0) return value;
  }
  return otherwise;
}

// SimuMax's B200 runs: slices of large models on one node, Megatron-Core with its distributed optimizer, one sample of
// 4,096 tokens a micro-batch, tensor parallelism with sequence parallelism, nothing recomputed.
Rows simumax(const Table& table) {
  Rows runs;
  for (size_t row = 0; row < table.rows(); ++row) {
    MeasuredRun run;
    const std::string name = table.text(row, "case");
    run.source = "SimuMax, B200";
    run.label = fmt::format("{} {}", table.where(row), shortened(name));
    run.machine = "b200-megatron";
    const auto* known = std::find_if(std::begin(kSliceModels), std::end(kSliceModels),
                                     [&](const SliceModel& model) { return name.starts_with(model.name); });
    if (known == std::end(kSliceModels)) {
      refuse(run, "the model of this case is not modelled (latent attention)");
    } else {
      run.model = llama_shape(known->hidden, known->ffn, known->heads, known->key_heads);
    }
    run.model.layers = part_of_case(name, "l", 1);
    run.model.sequence = part_of_case(name, "seq", 4096);
    spec::Strategy& strategy = run.strategy;
    strategy.tensor = part_of_case(name, "tp", 1);
    strategy.pipeline = part_of_case(name, "pp", 1);
    strategy.context = part_of_case(name, "cp", 1);
    const int64_t data = part_of_case(name, "dp", 1);
    strategy.sequence_parallel = strategy.tensor > 1;
    strategy.zero_stage = 1;
    strategy.global_batch = part_of_case(name, "mbc", 1) * data;
    run.devices = strategy.tensor * strategy.context * strategy.pipeline * data;
    run.step_seconds = table.number(row, "real_ms").value_or(0) * 1e-3;
    run.peak_bytes = table.number(row, "real_alloc_GiB").value_or(0) * 1024 * 1024 * 1024;
    settle(run);
    runs.push_back(std::move(run));
  }
  return runs;
}

// Sailor's artefact: Megatron-DeepSpeed on Alps, fp16, unfused attention, nothing recomputed, ZeRO off.
Rows sailor(const Table& table) {
  Rows runs;
  for (size_t row = 0; row < table.rows(); ++row) {
    MeasuredRun run;
    const std::string name = table.text(row, "model");
    run.source = "Sailor, Alps";
    run.label = fmt::format("{} {}", table.where(row), shortened(name));
    run.machine = "alps-sailor";
    const bool is_large = name == "GPT-NEO";  // 2.7B
    if (!is_large && name != "OPT-350") refuse(run, fmt::format("model '{}' is not known", shortened(name)));
    run.model.layers = is_large ? 32 : 24;
    run.model.hidden = is_large ? 2560 : 1024;
    run.model.heads = is_large ? 20 : 16;
    run.model.sequence = 2048;
    run.model.vocabulary = is_large ? 50304 : 50272;
    run.model.dropout = run.model.attention_dropout = kUsualDropout;
    run.compute = spec::Precision::fp16;
    need(run, table.count(row, "gpus"), run.devices, "gpus");
    need(run, table.count(row, "tp"), run.strategy.tensor, "tp");
    need(run, table.count(row, "pp"), run.strategy.pipeline, "pp");
    need(run, table.count(row, "mbs"), run.strategy.micro_batch, "mbs");
    need(run, table.count(row, "gbs"), run.strategy.global_batch, "gbs");
    run.step_seconds = table.number(row, "iter_s").value_or(0);
    run.peak_bytes = table.number(row, "peak_mem_bytes").value_or(0);
    run.peak_has_reserve = true;
    settle(run);
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace

std::optional<std::vector<MeasuredRun>> foreign_rows(const Table& table) {
  if (table.has("iter_seqsel_s")) return selene(table);
  if (table.has("# GPUs") && table.has("iteration time (ms)")) return vtrain(table);
  if (table.has("case") && table.has("real_ms")) return simumax(table);
  if (table.has("iter_s") && table.has("mbs") && table.has("gbs")) return sailor(table);
  return std::nullopt;
}

}  // namespace ridgeline::simulate
