#include "cost/kernels.h"

#include <algorithm>

#include "core/error.h"
#include "spec/parameters.h"

namespace ridgeline::cost {
namespace {

constexpr double fp32_bytes = 4;

// Collects the work of one unit; a method is one piece of it, in all passes.
class UnitWriter {
 public:
  UnitWriter(const spec::ModelSpec& model, const spec::Strategy& strategy, const LocalShares& shares,
             spec::Precision compute, const Recipe& recipe)
      : model_(model),
        strategy_(strategy),
        shares_(shares),
        recipe_(recipe),
        element_(compute == spec::Precision::fp32 ? 4 : 2),
        rows_(strategy.held_rows(model)),
        stream_rows_(LocalShares::stream_rows(model, strategy)),
        repeats_layer_(strategy.recompute == spec::Recompute::full) {}

  void embedding() {
    pass(work_.forward, 3 * stream_bytes(stream_rows_));
    pass(work_.backward, 3 * stream_bytes(stream_rows_));
    if (model_.embedding_norm) {
      pass(work_.forward, 2 * stream_bytes(stream_rows_));
      pass(work_.backward, 4 * stream_bytes(stream_rows_));
    }
    tensor_message(work_.forward, strategy_.sequence_parallel ? MessageKind::reduce_scatter : MessageKind::all_reduce);
    if (strategy_.sequence_parallel) tensor_message(work_.backward, MessageKind::all_gather);
    name_part("embedding");
  }

  void layer() {
    enter_branch();
    const int64_t query = shares_.query_width, heads = query / model_.head_size();
    product(rows_, model_.hidden, query + 2 * shares_.key_width);
    recipe_.fused_attention ? fused_attention(heads) : plain_attention(heads);
    context_messages();
    product(rows_, query, model_.hidden);
    leave_branch();
    name_part("attention");
    const bool by_rows = model_.experts > 0 && strategy_.keeps_experts_whole();
    enter_branch(by_rows);
    if (model_.experts > 0) {
      experts();
    } else {
      mlp(rows_, shares_.mlp_width, 1);
    }
    leave_branch(by_rows);
    name_part("mlp");
  }

  // Logits, loss and the norm before them. Never repeated.
  void head() {
    repeats_layer_ = false;
    is_head_ = true;  // it computes the gradient of its weight with the logits
    const int64_t width = shares_.vocabulary;
    const double logits = static_cast<double>(rows_) * static_cast<double>(width);
    pass(work_.forward, 2 * stream_bytes(stream_rows_));
    pass(work_.backward, 3 * stream_bytes(stream_rows_));
    if (strategy_.sequence_parallel) tensor_message(work_.forward, MessageKind::all_gather);
    product(rows_, model_.hidden, width);
    // Maximum, sum of exponentials and gradient are passes of their own over fp32 or compute elements.
    pass(work_.forward, logits * (element_ + 2 * fp32_bytes));
    pass(work_.backward, logits * (fp32_bytes + element_));
    const auto back = strategy_.sequence_parallel ? MessageKind::reduce_scatter : MessageKind::all_reduce;
    tensor_message(work_.backward, back);
    if (strategy_.tensor > 1) {
      for (int i = 0; i < 3; ++i) {
        work_.forward.messages.push_back({MessageKind::all_reduce, static_cast<double>(rows_) * fp32_bytes, false});
      }
    }
    name_part("head");
  }

  UnitWork take() { return std::move(work_); }

 private:
  double stream_bytes(int64_t rows) const {
    return static_cast<double>(rows) * static_cast<double>(model_.hidden) * element_;
  }

  // Names the kernels that were written since the last call.
  void name_part(const char* part) {
    for (Work* work : {&work_.forward, &work_.backward, &work_.recompute}) {
      for (Kernel& kernel : work->kernels) {
        if (*kernel.part == '\0') kernel.part = part;
      }
    }
  }

  void pass(Work& work, double bytes) { work.kernels.push_back({KernelKind::pass, 1, 0, 0, 0, 0, bytes}); }

  // A kernel of the forward that Recompute::full repeats.
  void forward(const Kernel& kernel) {
    work_.forward.kernels.push_back(kernel);
    if (repeats_layer_) work_.recompute.kernels.push_back(kernel);
  }

  void product(int64_t m, int64_t k, int64_t n, int64_t batch = 1) {
    const bool fp8 = recipe_.fp8_products && !is_head_;
    if (fp8) cast(m * batch, k, n);
    forward({.kind = KernelKind::product, .batch = batch, .m = m, .n = n, .k = k, .in_fp8 = fp8});
    work_.backward.kernels.push_back(
        {.kind = KernelKind::product, .batch = batch, .m = m, .n = k, .k = n, .in_fp8 = fp8});
    const double main_gradients = static_cast<double>(batch * n) * static_cast<double>(k) * 2 * fp32_bytes;
    work_.backward.kernels.push_back({.kind = KernelKind::product,
                                      .batch = batch,
                                      .m = n,
                                      .n = k,
                                      .k = m,
                                      .bytes = main_gradients,
                                      .in_fp8 = fp8,
                                      .can_be_deferred = !is_head_});
  }

  // Input and gradient of the output are read once more and written in 8 bits, as they are and transposed.
  void cast(int64_t rows, int64_t in, int64_t out) {
    const double row_bytes = static_cast<double>(rows) * (element_ + 2);
    forward({.kind = KernelKind::pass, .bytes = row_bytes * static_cast<double>(in)});
    pass(work_.backward, row_bytes * static_cast<double>(out));
  }

  void tensor_message(Work& work, MessageKind kind, bool hidden = false) {
    if (strategy_.tensor > 1) work.messages.push_back({kind, stream_bytes(rows_), hidden});
  }

  // Norm before a branch. Under sequence parallelism its output is gathered, in the backward once more. A branch that works
  // on a part of the rows gathers nothing but the gradients of norms that see all rows.
  void enter_branch(bool by_rows = false) {
    const double norm = 2 * stream_bytes(stream_rows_);
    forward({KernelKind::pass, 1, 0, 0, 0, 0, norm});
    const bool repeats_norm = strategy_.recompute == spec::Recompute::selective && !recipe_.selective_is_attention;
    if (repeats_norm) pass(work_.recompute, norm);
    pass(work_.backward, 4 * stream_bytes(stream_rows_));
    if (by_rows) {
      if (!strategy_.sequence_parallel) tensor_message(work_.backward, MessageKind::all_gather);
      return;
    }
    if (!strategy_.sequence_parallel) {
      tensor_message(work_.backward, MessageKind::all_reduce, recipe_.hides_tensor_backward);
      return;
    }
    tensor_message(work_.forward, MessageKind::all_gather, recipe_.hides_tensor_forward);
    if (repeats_layer_) tensor_message(work_.recompute, MessageKind::all_gather);
    tensor_message(work_.backward, MessageKind::all_gather, recipe_.hides_tensor_backward);
    tensor_message(work_.backward, MessageKind::reduce_scatter, recipe_.hides_tensor_backward);
  }

  // Bias, dropout and the residual's sum.
  void leave_branch(bool by_rows = false) {
    const double mask = model_.dropout > 0 ? 1.0 / element_ : 0.0;
    forward({KernelKind::pass, 1, 0, 0, 0, 0, (3 + mask) * stream_bytes(stream_rows_)});
    pass(work_.backward, (2 + mask) * stream_bytes(stream_rows_));
    if (by_rows && strategy_.sequence_parallel) return;
    const auto kind = by_rows                        ? MessageKind::all_gather
                      : strategy_.sequence_parallel ? MessageKind::reduce_scatter
                                                    : MessageKind::all_reduce;
    tensor_message(work_.forward, kind, recipe_.hides_tensor_forward);
    if (repeats_layer_) tensor_message(work_.recompute, kind);
    if (strategy_.sequence_parallel) tensor_message(work_.backward, MessageKind::all_gather);
  }

  // What goes over the context axis around attention.
  void context_messages() {
    const int64_t context = strategy_.context;
    if (context == 1) return;
    const double rows = static_cast<double>(rows_);
    const auto add = [&](Work& work, MessageKind kind, double bytes, bool hidden) {
      work.context.push_back({kind, bytes, hidden});
      if (&work == &work_.forward && repeats_layer_) work_.recompute.context.push_back({kind, bytes, hidden});
    };
    if (strategy_.context_kind == spec::ContextKind::ring) {
      const double keys_and_values = 2 * rows * static_cast<double>(shares_.key_width);
      for (int64_t step = 1; step < context; ++step) {
        add(work_.forward, MessageKind::shift, keys_and_values * element_, true);
        add(work_.backward, MessageKind::shift, keys_and_values * element_, true);
        add(work_.backward, MessageKind::shift, keys_and_values * fp32_bytes, true);
      }
      return;
    }
    const int64_t key_heads = std::max(shares_.key_width / model_.head_size(), context);
    const auto width = static_cast<double>(shares_.query_width + 2 * key_heads * model_.head_size());
    for (Work* work : {&work_.forward, &work_.backward}) {
      add(*work, MessageKind::all_to_all, rows * width * element_, false);
      add(*work, MessageKind::all_to_all, rows * static_cast<double>(shares_.query_width) * element_, false);
      // Into the order that attention reads, and back.
      pass(*work, 4 * rows * (width + static_cast<double>(shares_.query_width)) * element_);
    }
  }

  void fused_attention(int64_t heads) {
    const double scores = static_cast<double>(strategy_.micro_batch * heads) * square(model_.sequence) /
                          static_cast<double>(strategy_.context);
    const double flops = 4 * scores * static_cast<double>(model_.head_size());
    forward({KernelKind::attention, 1, 0, 0, 0, flops, 0});
    // Five products in place of two: scores again, and the gradients of value, scores, query and key.
    work_.backward.kernels.push_back({KernelKind::attention_backward, 1, 0, 0, 0, 2.5 * flops, 0});
  }

  void plain_attention(int64_t heads) {
    const int64_t batch = strategy_.micro_batch * heads;
    const int64_t s = model_.sequence, d = model_.head_size();
    const int64_t q = strategy_.held_sequence(model_);
    const double scores = static_cast<double>(batch) * static_cast<double>(q) * static_cast<double>(s);
    const bool drops = model_.attention_dropout > 0;
    const bool repeats_core = strategy_.recompute == spec::Recompute::selective && recipe_.selective_is_attention;
    const Kernel core[] = {{KernelKind::product, batch, q, s, d, 0, 0},
                           {KernelKind::pass, 1, 0, 0, 0, 0, scores * 2 * element_},
                           {KernelKind::pass, 1, 0, 0, 0, 0, drops ? scores * (2 * element_ + 1) : 0},
                           {KernelKind::product, batch, q, d, s, 0, 0}};
    for (const Kernel& kernel : core) {
      if (kernel.kind == KernelKind::pass && kernel.bytes <= 0) continue;
      forward(kernel);
      if (repeats_core) work_.recompute.kernels.push_back(kernel);
    }
    std::vector<Kernel>& back = work_.backward.kernels;
    back.push_back({KernelKind::product, batch, q, s, d, 0, 0});  // gradient of the weights
    back.push_back({KernelKind::product, batch, s, d, q, 0, 0});  // of value
    if (drops) back.push_back({KernelKind::pass, 1, 0, 0, 0, 0, scores * (2 * element_ + 1)});
    back.push_back({KernelKind::pass, 1, 0, 0, 0, 0, scores * 3 * element_});
    back.push_back({KernelKind::product, batch, q, d, s, 0, 0});  // of query
    back.push_back({KernelKind::product, batch, s, d, q, 0, 0});  // of key
  }

  void mlp(int64_t rows, int64_t width, int64_t batch) {
    product(rows, model_.hidden, model_.gated_mlp ? 2 * width : width, batch);
    const double wide = static_cast<double>(rows * batch) * static_cast<double>(width) * element_;
    const double gate = model_.gated_mlp ? 1 : 0;
    forward({KernelKind::pass, 1, 0, 0, 0, 0, (2 + gate) * wide});
    const bool repeats = strategy_.recompute == spec::Recompute::selective && !recipe_.selective_is_attention;
    if (repeats) pass(work_.recompute, (2 + gate) * wide);
    pass(work_.backward, (3 + 2 * gate) * wide);
    product(rows, width, model_.hidden, batch);
  }

  void expert_message(Work& work, double bytes) {
    if (strategy_.expert > 1) work.expert.push_back({MessageKind::all_to_all, bytes, false});
  }

  // Every expert gets an even share of the tokens, which are gathered before and summed after, and go to the ranks where
  // their experts lie and back: numbers of rows, rows and weights, outputs; and the gradients of these.
  void experts() {
    const bool by_rows = strategy_.keeps_experts_whole();
    const int64_t rows = by_rows ? rows_ / strategy_.tensor : rows_;
    const int64_t routed = rows * model_.experts_per_token;
    product(rows, model_.hidden, model_.experts);
    const bool counts = model_.router_auxiliary_loss > 0 || model_.capacity_factor > 0;
    for (Work* work : {&work_.forward, &work_.recompute}) {
      if (work == &work_.recompute && !repeats_layer_) break;
      if (counts && by_rows) work->messages.push_back({MessageKind::all_gather, static_cast<double>(strategy_.tensor) * counts_bytes(), false});
      if (counts && strategy_.context > 1) work->context.push_back({MessageKind::all_reduce, counts_bytes(), false});
      expert_message(*work, static_cast<double>(model_.experts) * 8);
      expert_message(*work, stream_bytes(routed));
      expert_message(*work, static_cast<double>(routed) * fp32_bytes);
      expert_message(*work, stream_bytes(routed));
    }
    expert_message(work_.backward, stream_bytes(routed));
    expert_message(work_.backward, static_cast<double>(routed) * fp32_bytes);
    expert_message(work_.backward, stream_bytes(routed));
    forward({KernelKind::pass, 1, 0, 0, 0, 0, 4 * stream_bytes(routed)});
    pass(work_.backward, 4 * stream_bytes(routed));
    const int64_t here = model_.experts / strategy_.expert;
    const int64_t rows_of_one = (routed + here - 1) / here;
    mlp(rows_of_one, by_rows ? model_.expert_ffn() : shares_.expert_width, here);
    if (shares_.shared_width > 0) mlp(rows, by_rows ? model_.shared_ffn_hidden : shares_.shared_width, 1);
  }

  // Picks of each expert in each sample.
  double counts_bytes() const { return static_cast<double>(strategy_.micro_batch * model_.experts) * 8; }

  static double square(int64_t value) { return static_cast<double>(value) * static_cast<double>(value); }

  const spec::ModelSpec& model_;
  const spec::Strategy& strategy_;
  const LocalShares& shares_;
  const Recipe& recipe_;
  double element_;
  int64_t rows_;
  int64_t stream_rows_;
  bool repeats_layer_;
  bool is_head_ = false;
  UnitWork work_;
};

}  // namespace

UnitWork unit_kernels(const spec::ModelSpec& model, const spec::Strategy& strategy, const LocalShares& shares,
                      spec::Precision compute, const Recipe& recipe, int64_t unit) {
  RIDGELINE_ASSERT(unit >= 0 && unit < spec::unit_count(model) && strategy.tensor >= 1 && strategy.micro_batch >= 1);
  UnitWriter writer(model, strategy, shares, compute, recipe);
  if (unit == spec::embedding_unit()) {
    writer.embedding();
  } else if (unit == spec::head_unit(model)) {
    writer.head();
  } else {
    writer.layer();
  }
  return writer.take();
}

}  // namespace ridgeline::cost
