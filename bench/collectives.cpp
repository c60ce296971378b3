// All-reduce through shared memory beside Gloo over the loopback, both measured in the same run, in turn, so that what
// else the machine does weighs on both. Ranks are threads; a time is the median over rounds of the slowest rank's mean.
//
//   cmake -DRIDGELINE_BENCH=ON ... && cmake --build BUILD --target bench_collectives && BUILD/bench_collectives [RANKS ...]
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "mesh/mesh.h"

namespace ridgeline {
namespace {

constexpr int kRounds = 5;

struct Times {
  std::vector<double> shared_memory, gloo;  // seconds, by round
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double seconds_of(const mesh::Mesh& mesh, const at::Tensor& tensor, int repeats) {
  mesh.world().barrier().wait();
  const auto begin = std::chrono::steady_clock::now();
  for (int repeat = 0; repeat < repeats; ++repeat) mesh.world().all_reduce(tensor, mesh::Reduction::max).wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / repeats;
}

Times measure(int64_t ranks, int64_t bytes) {
  const int repeats = static_cast<int>(std::clamp<int64_t>((int64_t{4} << 20) / bytes, 2, 20));
  const auto shared_store = mesh::Store::in_process(), gloo_store = mesh::Store::in_process();
  Times times{std::vector<double>(kRounds), std::vector<double>(kRounds)};
  std::mutex mutex;
  const auto work = [&](int64_t rank) {
    at::set_num_threads(1);
    const auto device = platform::Device::select("cpu");
    const mesh::MeshShape shape{.data = ranks};
    const mesh::Mesh shared(shape, rank, shared_store, device,
                            {.back_end = mesh::BackEndKind::shared_memory, .one_machine = true});
    const mesh::Mesh gloo(shape, rank, gloo_store, device, {.back_end = mesh::BackEndKind::gloo, .one_machine = true});
    const at::Tensor tensor = at::ones({bytes / 4});
    seconds_of(shared, tensor, 2);
    seconds_of(gloo, tensor, 2);
    for (std::size_t round = 0; round < kRounds; ++round) {
      const double with_shared = seconds_of(shared, tensor, repeats * 5);
      const double with_gloo = seconds_of(gloo, tensor, repeats);
      const std::lock_guard lock(mutex);
      times.shared_memory[round] = std::max(times.shared_memory[round], with_shared);
      times.gloo[round] = std::max(times.gloo[round], with_gloo);
    }
  };
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank) threads.emplace_back(work, rank);
  for (std::thread& thread : threads) thread.join();
  return times;
}

}  // namespace
}  // namespace ridgeline

int main(int count, char** arguments) {
  std::vector<int64_t> all_ranks;
  for (int index = 1; index < count; ++index) all_ranks.push_back(std::max(2, std::atoi(arguments[index])));
  if (all_ranks.empty()) all_ranks = {2, 4, 8};
  fmt::print("{:>6} {:>10} {:>16} {:>12} {:>8}\n", "ranks", "KiB", "shared memory", "gloo", "ratio");
  for (const int64_t ranks : all_ranks) {
    for (const int64_t kib : {4, 256, 16384}) {
      const ridgeline::Times times = ridgeline::measure(ranks, kib * 1024);
      const double shared = ridgeline::median(times.shared_memory), gloo = ridgeline::median(times.gloo);
      fmt::print("{:>6} {:>10} {:>13.3f} ms {:>9.3f} ms {:>8.1f}\n", ranks, kib, shared * 1e3, gloo * 1e3, gloo / shared);
    }
  }
}
