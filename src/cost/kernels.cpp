#include "cost/kernels.h"

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
        rows_(strategy.micro_batch * model.sequence),
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
    product(rows_, query, model_.hidden);
    leave_branch();
    name_part("attention");
    enter_branch();
    if (model_.experts > 0) {
      experts();
    } else {
      mlp(rows_, shares_.mlp_width, 1);
    }
    leave_branch();
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

  // Norm before a branch. Under sequence parallelism its output is gathered, in the backward once more.
  void enter_branch() {
    const double norm = 2 * stream_bytes(stream_rows_);
    forward({KernelKind::pass, 1, 0, 0, 0, 0, norm});
    const bool repeats_norm = strategy_.recompute == spec::Recompute::selective && !recipe_.selective_is_attention;
    if (repeats_norm) pass(work_.recompute, norm);
    pass(work_.backward, 4 * stream_bytes(stream_rows_));
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
  void leave_branch() {
    const double mask = model_.dropout > 0 ? 1.0 / element_ : 0.0;
    forward({KernelKind::pass, 1, 0, 0, 0, 0, (3 + mask) * stream_bytes(stream_rows_)});
    pass(work_.backward, (2 + mask) * stream_bytes(stream_rows_));
    const auto kind = strategy_.sequence_parallel ? MessageKind::reduce_scatter : MessageKind::all_reduce;
    tensor_message(work_.forward, kind, recipe_.hides_tensor_forward);
    if (repeats_layer_) tensor_message(work_.recompute, kind);
    if (strategy_.sequence_parallel) tensor_message(work_.backward, MessageKind::all_gather);
  }

  void fused_attention(int64_t heads) {
    const double scores = static_cast<double>(strategy_.micro_batch * heads) * square(model_.sequence);
    const double flops = 4 * scores * static_cast<double>(model_.head_size());
    forward({KernelKind::attention, 1, 0, 0, 0, flops, 0});
    // Five products in place of two: scores again, and the gradients of value, scores, query and key.
    work_.backward.kernels.push_back({KernelKind::attention_backward, 1, 0, 0, 0, 2.5 * flops, 0});
  }

  void plain_attention(int64_t heads) {
    const int64_t batch = strategy_.micro_batch * heads;
    const int64_t s = model_.sequence, d = model_.head_size();
    const double scores = static_cast<double>(batch) * square(s);
    const bool drops = model_.attention_dropout > 0;
    const bool repeats_core = strategy_.recompute == spec::Recompute::selective && recipe_.selective_is_attention;
    const Kernel core[] = {{KernelKind::product, batch, s, s, d, 0, 0},
                           {KernelKind::pass, 1, 0, 0, 0, 0, scores * 2 * element_},
                           {KernelKind::pass, 1, 0, 0, 0, 0, drops ? scores * (2 * element_ + 1) : 0},
                           {KernelKind::product, batch, s, d, s, 0, 0}};
    for (const Kernel& kernel : core) {
      if (kernel.kind == KernelKind::pass && kernel.bytes <= 0) continue;
      forward(kernel);
      if (repeats_core) work_.recompute.kernels.push_back(kernel);
    }
    std::vector<Kernel>& back = work_.backward.kernels;
    back.push_back({KernelKind::product, batch, s, s, d, 0, 0});  // gradient of the weights
    back.push_back({KernelKind::product, batch, s, d, s, 0, 0});  // of value
    if (drops) back.push_back({KernelKind::pass, 1, 0, 0, 0, 0, scores * (2 * element_ + 1)});
    back.push_back({KernelKind::pass, 1, 0, 0, 0, 0, scores * 3 * element_});
    back.push_back({KernelKind::product, batch, s, d, s, 0, 0});  // of query
    back.push_back({KernelKind::product, batch, s, d, s, 0, 0});  // of key
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

  // Every expert gets an even share of the tokens, which are gathered before and summed after.
  void experts() {
    product(rows_, model_.hidden, model_.experts);
    const int64_t routed = rows_ * model_.experts_per_token;
    forward({KernelKind::pass, 1, 0, 0, 0, 0, 4 * stream_bytes(routed)});
    pass(work_.backward, 4 * stream_bytes(routed));
    const int64_t rows_of_one = (routed + model_.experts - 1) / model_.experts;
    mlp(rows_of_one, shares_.expert_width, model_.experts);
    if (shares_.shared_width > 0) mlp(rows_, shares_.shared_width, 1);
  }

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
