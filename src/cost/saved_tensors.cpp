#include "cost/saved_tensors.h"

#include <algorithm>

#include "core/error.h"
#include "spec/parameters.h"

namespace ridgeline::cost {
namespace {

using spec::Placement;
using spec::Recompute;

// Writes down the tables of units; a method is what one piece keeps.
class Table {
 public:
  Table(const spec::ModelSpec& model, const spec::Strategy& strategy)
      : model_(model),
        strategy_(strategy),
        residual_(spec::residual_placement(strategy)),
        micro_batch_(strategy.micro_batch),
        rows_(strategy.held_rows(model)) {}

  std::vector<SavedTensor> layer() {
    norm("attention", Recompute::full, Recompute::selective);
    add("attention", "norm output", {rows_, model_.hidden}, residual_, Recompute::none);
    attention();
    norm("mlp", Recompute::selective, Recompute::selective);
    add("mlp", "norm output", {rows_, model_.hidden}, residual_, Recompute::none);
    if (model_.experts > 0) {
      experts();
    } else {
      mlp("", rows_, model_.ffn());
    }
    return std::move(list_);
  }

  // The tokens alone, which belong to the micro-batch, but for a norm.
  std::vector<SavedTensor> embedding() {
    if (model_.embedding_norm) norm("embedding", Recompute::full, Recompute::full);
    return std::move(list_);
  }

  // Two tensors a linear layer; what two of them share is listed once.
  std::vector<SavedTensor> deferred_layer() {
    const std::vector<int64_t> stream = {rows_, model_.hidden};
    deferred("attention", "qkv input", stream, Placement::replicate());
    if (model_.fused_qkv()) {
      deferred("attention", "qkv gradient", {rows_, 3, model_.hidden}, Placement::shard(2));
    } else {
      deferred("attention", "query gradient", {rows_, model_.query_width()}, Placement::shard(1));
      deferred("attention", "key gradient", {rows_, model_.key_width()}, Placement::shard(1));
      deferred("attention", "value gradient", {rows_, model_.key_width()}, Placement::shard(1));
    }
    deferred("attention", "output input", {rows_, model_.query_width()}, Placement::shard(1));
    deferred("attention", "output gradient", stream, Placement::replicate());
    if (model_.experts > 0) {
      deferred_experts();
    } else {
      deferred_mlp("", rows_, model_.ffn());
    }
    return std::move(list_);
  }

  // The head forms the gradient of its logits in its forward (nn/head.h), so it keeps that of its normed rows.
  std::vector<SavedTensor> head() {
    norm("head", Recompute::full, Recompute::full);
    add("head", "norm output gradient", {rows_, model_.hidden}, residual_, Recompute::full);
    return std::move(list_);
  }

 private:
  void add(const char* part, const std::string& name, std::vector<int64_t> shape, const Placement& placement,
           Recompute kept_through, Element element = Element::compute) {
    list_.push_back({part, name, std::move(shape), element, placement, kept_through});
  }

  void deferred(const char* part, const std::string& name, std::vector<int64_t> shape, const Placement& placement) {
    add(part, name, std::move(shape), placement, Recompute::full);
  }

  // Placements of rows that go to experts, and of their channels.
  bool is_whole() const { return strategy_.keeps_experts_whole(); }
  Placement routed_rows() const { return is_whole() ? Placement::shard(0) : Placement::replicate(); }
  Placement expert_channels() const { return is_whole() ? Placement::shard(0) : Placement::shard(1); }

  void deferred_experts() {
    const int64_t routed = rows_ * model_.experts_per_token, width = model_.expert_ffn(), hidden = model_.hidden;
    // Rows that are a part of those that this rank has keep all of them.
    deferred("mlp", "router input", {rows_, hidden}, is_whole() ? residual_ : Placement::replicate());
    add("mlp", "router gradient", {rows_, model_.experts}, routed_rows(), Recompute::full, Element::fp32);
    deferred("mlp", "experts input", {routed, hidden}, routed_rows());
    for (const char* name : {"gate gradient", "up gradient", "down input"}) {
      deferred("mlp", std::string("experts ") + name, {routed, width}, expert_channels());
    }
    deferred("mlp", "experts down gradient", {routed, hidden}, routed_rows());
    const int64_t shared = model_.shared_ffn_hidden;
    if (shared == 0) return;
    for (const char* name : {"gate gradient", "up gradient", "down input"}) {
      deferred("mlp", std::string("shared ") + name, {rows_, shared}, expert_channels());
    }
    deferred("mlp", "shared down gradient", {rows_, hidden}, is_whole() ? residual_ : Placement::replicate());
  }

  void deferred_mlp(const std::string& prefix, int64_t rows, int64_t width) {
    deferred("mlp", prefix + "up input", {rows, model_.hidden}, Placement::replicate());
    deferred("mlp", prefix + "up gradient", {rows, width}, Placement::shard(1));
    if (model_.gated_mlp) deferred("mlp", prefix + "gate gradient", {rows, width}, Placement::shard(1));
    deferred("mlp", prefix + "down input", {rows, width}, Placement::shard(1));
    deferred("mlp", prefix + "down gradient", {rows, model_.hidden}, Placement::replicate());
  }

  // Input and statistics of the norm that a piece starts with.
  void norm(const char* part, Recompute input, Recompute statistics) {
    add(part, "input", {rows_, model_.hidden}, residual_, input);
    if (model_.norm == spec::Norm::layer_norm) add(part, "norm mean", {rows_}, residual_, statistics, Element::fp32);
    add(part, "norm rstd", {rows_}, residual_, statistics, Element::fp32);
  }

  bool exchanges_heads() const {
    return strategy_.context > 1 && strategy_.context_kind == spec::ContextKind::all_to_all;
  }

  // With heads shared out among the ranks of the context axis: what attention worked on, and what it gave as rows.
  void exchanged_attention() {
    const char* part = "attention";
    const int64_t context = strategy_.context, tensor = strategy_.tensor, sequence = model_.sequence;
    const int64_t heads = model_.heads / context;
    const int64_t key_heads = std::max(model_.key_heads() / tensor, context) / context * tensor;
    if (model_.qk_norm) qk_norm();
    add(part, "exchanged qkv", {micro_batch_, sequence, heads + 2 * key_heads, model_.head_size()}, Placement::shard(2),
        Recompute::selective);
    add(part, "attention output", {micro_batch_, heads, sequence, model_.head_size()}, Placement::shard(1),
        Recompute::selective);
    add(part, "log-sum-exp", {micro_batch_, heads, sequence}, Placement::shard(1), Recompute::selective, Element::fp32);
    add(part, "attention rows", {rows_, model_.query_width()}, Placement::shard(1), Recompute::selective);
  }

  void attention() {
    const char* part = "attention";
    if (exchanges_heads()) return exchanged_attention();
    if (model_.fused_qkv()) {
      add(part, "qkv", {rows_, 3, model_.hidden}, Placement::shard(2), Recompute::selective);
    } else {
      // The output of a norm is rebuilt from its input.
      const Recompute normed = model_.qk_norm ? Recompute::none : Recompute::selective;
      add(part, "query", {rows_, model_.query_width()}, Placement::shard(1), normed);
      add(part, "key", {rows_, model_.key_width()}, Placement::shard(1), normed);
      add(part, "value", {rows_, model_.key_width()}, Placement::shard(1), Recompute::selective);
    }
    if (model_.qk_norm) qk_norm();
    const int64_t heads = model_.heads, sequence = strategy_.held_sequence(model_);
    add(part, "attention output", {micro_batch_, heads, sequence, model_.head_size()}, Placement::shard(1),
        Recompute::selective);
    add(part, "log-sum-exp", {micro_batch_, heads, sequence}, Placement::shard(1), Recompute::selective, Element::fp32);
  }

  // Rotation is undone from its angles, but a norm's backward needs its input.
  void qk_norm() {
    const auto of = [this](const std::string& name, int64_t heads) {
      add("attention", name + " before norm", {rows_, heads * model_.head_size()}, Placement::shard(1),
          Recompute::selective);
      add("attention", name + " norm rstd", {rows_, heads}, Placement::shard(1), Recompute::selective, Element::fp32);
    };
    of("query", model_.heads);
    of("key", model_.key_heads());
  }

  void mlp(const std::string& prefix, int64_t rows, int64_t width, const Placement& placement = Placement::shard(1)) {
    const std::vector<int64_t> wide = {rows, width};
    if (model_.gated_mlp) add("mlp", prefix + "gate", wide, placement, Recompute::selective);
    add("mlp", prefix + (model_.gated_mlp ? "up" : "pre-activation"), wide, placement, Recompute::selective);
    add("mlp", prefix + "activation", wide, placement, Recompute::none);
  }

  // Rows are sorted by expert, so that each expert's are together; a token's row stands there once for each of its
  // experts. The router's weight multiplies the activation, so that the experts' outputs need not be kept.
  void experts() {
    const int64_t picks = model_.experts_per_token, routed = rows_ * picks;
    const Placement rows = routed_rows();
    const auto keep = [&](const char* name, std::vector<int64_t> shape, const Placement& placement, Element element) {
      add("mlp", name, std::move(shape), placement, Recompute::selective, element);
    };
    keep("router probabilities", {rows_, model_.experts}, rows, Element::fp32);
    if (model_.router_z_loss > 0) keep("router log-sum-exp", {rows_}, rows, Element::fp32);
    keep("picked experts", {rows_, picks}, rows, Element::int64);
    keep("router weights", {rows_, picks}, rows, Element::fp32);
    if (model_.router_auxiliary_loss > 0 || model_.capacity_factor > 0) {
      keep("tokens of experts", {micro_batch_, model_.experts}, Placement::replicate(), Element::int64);
    }
    keep("order of picks", {routed}, rows, Element::int64);
    if (strategy_.expert > 1) keep("order of arrivals", {routed}, rows, Element::int64);
    keep("routed rows", {routed, model_.hidden}, rows, Element::compute);
    keep("routed weights", {routed}, rows, Element::fp32);
    mlp("experts ", routed, model_.expert_ffn(), expert_channels());
    if (model_.shared_ffn_hidden > 0) mlp("shared ", rows_, model_.shared_ffn_hidden, expert_channels());
  }

  const spec::ModelSpec& model_;
  const spec::Strategy& strategy_;
  Placement residual_;
  int64_t micro_batch_;
  int64_t rows_;
  std::vector<SavedTensor> list_;
};

}  // namespace

int64_t element_bytes(Element element, spec::Precision compute) {
  if (element == Element::int64) return 8;
  return element == Element::fp32 || compute == spec::Precision::fp32 ? 4 : 2;
}

std::vector<SavedTensor> saved_tensors(const spec::ModelSpec& model, const spec::Strategy& strategy, int64_t unit) {
  RIDGELINE_ASSERT(unit >= 0 && unit < spec::unit_count(model));
  Table table(model, strategy);
  if (unit == spec::embedding_unit()) return table.embedding();
  return unit == spec::head_unit(model) ? table.head() : table.layer();
}

std::vector<SavedTensor> deferred_tensors(const spec::ModelSpec& model, const spec::Strategy& strategy, int64_t unit) {
  RIDGELINE_ASSERT(unit >= 0 && unit < spec::unit_count(model));
  if (unit == spec::embedding_unit() || unit == spec::head_unit(model)) return {};
  return Table(model, strategy).deferred_layer();
}

bool is_kept(const SavedTensor& tensor, spec::Recompute recompute) {
  // Recompute is ordered from the weakest to the strongest.
  static_assert(Recompute::none < Recompute::selective && Recompute::selective < Recompute::full);
  return recompute <= tensor.kept_through;
}

int64_t local_bytes(const SavedTensor& tensor, const spec::Strategy& strategy, spec::Precision compute,
                    int64_t tensor_rank) {
  const spec::Box box = spec::local_box(tensor.shape, tensor.placement, strategy.tensor, tensor_rank);
  return box.elements() * element_bytes(tensor.element, compute);
}

}  // namespace ridgeline::cost
