// Throughput of the fused kernels beside the eager ATen operations they replace, on CPU.
//
//   cmake -DRIDGELINE_BENCH=ON ... && cmake --build BUILD --target bench_kernels && BUILD/bench_kernels
//
// bytes_per_second counts what a pass must at least read and write in the tensors' own formats, so it compares with the
// memory's bandwidth, and fused and plain versions of a kernel with each other. RIDGELINE_CPU picks another target.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include <span>
#include <vector>

#include "core/random.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/cross_entropy.h"
#include "nn/kernels/dropout.h"
#include "nn/kernels/gelu.h"
#include "nn/kernels/layer_norm.h"
#include "optim/adamw.h"
#include "optim/gradient_norm.h"

namespace ridgeline {
namespace {

// A micro-batch of GPT-2: large enough not to stay in the cache.
constexpr int64_t kRows = 2048;
constexpr int64_t kHidden = 1024;
constexpr int64_t kFfn = 4096;
constexpr int64_t kVocabulary = 50257;
constexpr int64_t kParameters = int64_t{1} << 24;

at::Tensor normal(at::IntArrayRef sizes, at::ScalarType dtype) { return at::randn(sizes, at::kFloat).to(dtype); }

// Runs `pass` and reports its bytes.
template <typename Pass>
void measure(benchmark::State& state, int64_t bytes, Pass pass) {
  for (auto iteration : state) pass();
  state.SetBytesProcessed(state.iterations() * bytes);
}

void gelu_forward(benchmark::State& state, bool fused, at::ScalarType dtype) {
  const at::Tensor x = normal({kRows, kFfn}, dtype), bias = normal({kFfn}, dtype), out = at::empty_like(x);
  measure(state, 2 * x.nbytes(),
          [&] { fused ? nn::gelu_forward(x, bias, out) : nn::plain::gelu_forward(x, bias, out); });
}

void gelu_backward(benchmark::State& state, bool fused, at::ScalarType dtype) {
  const at::Tensor x = normal({kRows, kFfn}, dtype), bias = normal({kFfn}, dtype),
                   gradient = normal({kRows, kFfn}, dtype);
  measure(state, 3 * x.nbytes(),
          [&] { fused ? nn::gelu_backward(gradient, x, bias) : nn::plain::gelu_backward(gradient, x, bias); });
}

void layer_norm_forward(benchmark::State& state, bool fused, at::ScalarType dtype) {
  const at::Tensor x = normal({kRows, kHidden}, dtype), weight = normal({kHidden}, dtype);
  const auto pass = fused ? nn::layer_norm_forward : nn::plain::layer_norm_forward;
  measure(state, 2 * x.nbytes(), [&] { benchmark::DoNotOptimize(pass(x, weight, weight, 1e-5)); });
}

void layer_norm_backward(benchmark::State& state, bool fused, at::ScalarType dtype) {
  const at::Tensor x = normal({kRows, kHidden}, dtype), weight = normal({kHidden}, dtype);
  const at::Tensor weight_main = at::zeros({kHidden}), bias_main = at::zeros({kHidden});
  const nn::LayerNormOutput saved = nn::layer_norm_forward(x, weight, weight, 1e-5);
  const auto pass = fused ? nn::layer_norm_backward : nn::plain::layer_norm_backward;
  measure(state, 4 * x.nbytes(),
          [&] { benchmark::DoNotOptimize(pass(x, x, saved.mean, saved.rstd, weight, weight_main, bias_main, x)); });
}

void cross_entropy(benchmark::State& state, bool fused, at::ScalarType dtype) {
  const at::Tensor logits = normal({256, kVocabulary}, dtype);
  const at::Tensor targets = at::randint(0, kVocabulary, {256}, at::kLong);
  measure(state, 2 * logits.nbytes(), [&] {
    if (fused) {
      nn::loss_and_gradient(logits, targets, 1e-3);
    } else {  // as autograd would: log-softmax, loss, and the two backwards folded into softmax - onehot
      const at::Tensor log_softmax = at::log_softmax(logits, 1, at::kFloat);
      benchmark::DoNotOptimize(at::nll_loss(log_softmax, targets));
      const at::Tensor gradient = log_softmax.exp_();
      gradient.scatter_add_(1, targets.unsqueeze(1), at::full({256, 1}, -1.0f));
      logits.copy_(gradient.mul_(1e-3));
    }
  });
}

void dropout(benchmark::State& state, bool fused, at::ScalarType dtype) {
  const at::Tensor x = normal({kRows, 1, kHidden}, dtype), residual = normal({kRows, 1, kHidden}, dtype);
  const std::vector<int64_t> samples = {5};
  const nn::DropoutPlace place{dropout_key(1, 2, 3), 0, samples, 0};
  measure(state, 3 * x.nbytes(), [&] {
    if (fused) {
      nn::apply_dropout_and_add(x, residual, DropoutRate(0.1), place, x);
    } else {  // ATen's own generator
      benchmark::DoNotOptimize(at::dropout(x, 0.1, true).add_(residual));
    }
  });
}

void bias_gradient(benchmark::State& state, bool fused, at::ScalarType dtype) {
  const at::Tensor gradient = normal({kRows, kFfn}, dtype), main = at::zeros({kFfn});
  measure(state, gradient.nbytes(),
          [&] { fused ? nn::bias_gradient(main, gradient) : nn::plain::bias_gradient(main, gradient); });
}

void main_gradient(benchmark::State& state, bool fused, at::ScalarType dtype) {
  const at::Tensor gradient = normal({kFfn, kHidden}, dtype), main = at::zeros({kFfn, kHidden});
  const auto pass = fused ? nn::add_into_main_gradient : nn::plain::add_into_main_gradient;
  measure(state, gradient.nbytes() + 2 * main.nbytes(), [&] { pass(main, gradient); });
}

void adamw(benchmark::State& state, bool fused, at::ScalarType dtype) {
  const at::Tensor master = normal({kParameters}, at::kFloat), gradient = normal({kParameters}, at::kFloat);
  const at::Tensor first = at::zeros({kParameters}), second = at::zeros({kParameters});
  const at::Tensor parameter = dtype == at::kFloat ? master : master.to(dtype);
  const optim::AdamWRange all[] = {{0, kParameters, true}};
  const auto pass = fused ? optim::adamw_step : optim::plain::adamw_step;
  const int64_t bytes = 7 * master.nbytes() + (dtype == at::kFloat ? 0 : parameter.nbytes());
  int64_t step = 0;
  measure(state, bytes, [&] {
    pass(master, first, second, gradient, parameter, std::span(all), optim::AdamWSettings{}, step++, 0.999);
  });
}

void square_sum(benchmark::State& state, bool fused, at::ScalarType) {
  const std::vector<optim::GradientPart> parts = {{normal({kParameters}, at::kFloat), 1.0}};
  const auto pass = fused ? optim::weighted_square_sum : optim::plain::weighted_square_sum;
  measure(state, parts[0].gradient.nbytes(), [&] { benchmark::DoNotOptimize(pass(parts, at::kCPU)); });
}

void initial_values(benchmark::State& state, bool fused, at::ScalarType) {
  const at::Tensor values = at::empty({int64_t{1} << 20}, at::kFloat);
  const std::span<float> span(values.data_ptr<float>(), static_cast<size_t>(values.numel()));
  measure(state, values.nbytes(), [&] {
    if (fused) {
      fill_normal(span, 17, 0, 0.02);
    } else {
      values.normal_(0.0, 0.02);
    }
  });
}

using Kernel = void (*)(benchmark::State&, bool, at::ScalarType);

void add(const std::string& name, Kernel kernel, std::initializer_list<at::ScalarType> dtypes) {
  for (const at::ScalarType dtype : dtypes) {
    for (const bool fused : {true, false}) {
      const std::string full = name + "/" + c10::toString(dtype) + (fused ? "/fused" : "/aten");
      benchmark::RegisterBenchmark(full.c_str(), kernel, fused, dtype)->UseRealTime()->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace
}  // namespace ridgeline

int main(int argc, char** argv) {
  using namespace ridgeline;
  const auto formats = {at::kBFloat16, at::kFloat};
  add("gelu_forward", gelu_forward, formats);
  add("gelu_backward", gelu_backward, formats);
  add("layer_norm_forward", layer_norm_forward, formats);
  add("layer_norm_backward", layer_norm_backward, formats);
  add("cross_entropy", cross_entropy, formats);
  add("dropout_and_add", dropout, formats);
  add("bias_gradient", bias_gradient, formats);
  add("add_into_main_gradient", main_gradient, formats);
  add("adamw", adamw, formats);
  add("square_sum", square_sum, {at::kFloat});
  add("initial_values", initial_values, {at::kFloat});
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
