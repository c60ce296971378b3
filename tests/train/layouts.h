// Layouts in words, shared by the tests that go through many of them.
#pragma once

#include <string>

#include "spec/families.h"
#include "train/small_run.h"

namespace ridgeline::train {

// A layout in the words of its name: t2 p2 d2 are the axes (d is derived from the ranks), then switches, among them
// those of the context axis.
struct Layout {
  int64_t tensor, pipeline, data;
  // Of: ring2, ring3, ring4, ring8, heads2, heads4, heads8 (context of that kind; heads: all_to_all), seq24 (tokens of
  // a sample), sp, zero (1), zero2, zero3, hybrid (shards over two ranks), offload, gpipe, vp2 (two chunks a stage),
  // zb, zbv, deep (8 layers), selective, full, mb2, untied, dropout, documents, uneven, tiny_buckets, bf16, fp16, gloo
  // (instead of shared memory), ep2, ep4 (ranks that experts lie on), whole (experts are not cut over the tensor axis),
  // all_experts (each token goes to all), no_capacity; or a family of spec/families.h.
  std::string switches;

  std::string family() const {
    for (const std::string& name : spec::family_names()) {
      if (has(name)) return name;
    }
    for (const std::string& name : spec::expert_family_names()) {
      if (has(name)) return name;
    }
    return has("untied") ? "gpt_untied" : "gpt";
  }
  bool has(const std::string& word) const { return (" " + switches + " ").find(" " + word + " ") != std::string::npos; }
  int64_t context() const {
    for (const int64_t size : {2, 3, 4, 8}) {
      if (has(fmt::format("ring{}", size)) || has(fmt::format("heads{}", size))) return size;
    }
    return 1;
  }
  bool shares_heads() const { return switches.find("heads") != std::string::npos; }
  int64_t ranks() const { return tensor * context() * pipeline * data; }
  std::string name() const {
    std::string text = fmt::format("t{}_p{}_d{}_{}", tensor, pipeline, data, switches);
    for (char& c : text) c = c == ' ' ? '_' : c;
    return text;
  }
};

inline spec::TrainSpec spec_of(const Layout& layout, const std::string& data) {
  spec::TrainSpec spec = small_spec(data);
  spec.strategy.tensor = layout.tensor;
  spec.strategy.pipeline = layout.pipeline;
  spec.strategy.context = layout.context();
  if (layout.shares_heads()) spec.strategy.context_kind = spec::ContextKind::all_to_all;
  if (layout.has("seq24")) spec.model.sequence = 24;
  spec.strategy.sequence_parallel = layout.has("sp");
  spec.strategy.zero_stage = layout.has("zero3") ? 3 : layout.has("zero2") ? 2 : layout.has("zero") ? 1 : 0;
  spec.strategy.shard_group = layout.has("hybrid") ? 2 : 0;
  if (layout.has("gpipe")) spec.strategy.schedule = spec::ScheduleKind::gpipe;
  if (layout.has("selective")) spec.strategy.recompute = spec::Recompute::selective;
  if (layout.has("full")) spec.strategy.recompute = spec::Recompute::full;
  if (layout.has("mb2")) spec.strategy.micro_batch = 2;
  spec.model = spec::as_family(spec.model, layout.family());
  spec.strategy.offload_optimizer = layout.has("offload");
  spec.data.separate_documents = layout.has("documents");
  if (layout.has("dropout")) spec.model.dropout = 0.1, spec.model.attention_dropout = 0.1;
  if (layout.has("deep")) spec.model.layers = 8;
  if (layout.has("all_experts")) spec.model.experts_per_token = spec.model.experts, spec.model.capacity_factor = 0;
  if (layout.has("no_capacity")) spec.model.capacity_factor = 0;
  if (layout.has("ep2")) spec.strategy.expert = 2;
  if (layout.has("ep4")) spec.strategy.expert = 4;
  if (layout.has("whole")) spec.strategy.expert_tensor = 1;
  if (layout.has("zb")) spec.strategy.schedule = spec::ScheduleKind::zero_bubble;
  if (layout.has("zbv")) spec.strategy.schedule = spec::ScheduleKind::zero_bubble_v;
  if (layout.has("vp2") || layout.has("zbv")) spec.strategy.virtual_pipeline = 2;
  if (layout.has("uneven")) {
    const int64_t stages = spec.strategy.global_stages();
    spec.strategy.stage_layers.assign(stages, 1);
    spec.strategy.stage_layers.front() = spec.model.layers - stages + 1;
  }
  if (layout.has("tiny_buckets")) spec.strategy.bucket_mib = 0.01;
  if (layout.has("bf16")) spec.precision.compute = spec::Precision::bf16;
  if (layout.has("fp16")) spec.precision.compute = spec::Precision::fp16;
  return spec;
}

// A token file for all tests of the process.
inline const std::string& token_file() {
  static TemporaryFolder folder;
  static const std::string prefix = [] {
    const std::string path = (folder.path() / "tokens").string();
    write_tokens(path, 101, 20000);
    return path;
  }();
  return prefix;
}

}  // namespace ridgeline::train
