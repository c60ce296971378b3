// Ranks as threads of the test's own process, over a store in memory; they talk as ranks of one machine do, through
// shared memory, or over Gloo's connections where MeshOptions.back_end says so:
//
//   run_ranks(4, [](int64_t rank, std::shared_ptr<Store> store) {
//     Mesh mesh({.data = 4}, rank, store, platform::Device::select("cpu"), rank_options());
//     ...
//   });
//
// What a rank throws is thrown by run_ranks once all have ended: of several, the first that is no broken connection. A
// rank that ends early closes its connections, which ends what the others wait for. GoogleTest's EXPECT and ASSERT work
// in ranks, but ASSERT leaves only that rank's function.
#pragma once

#include <ATen/Parallel.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "mesh/failure.h"
#include "mesh/mesh.h"
#include "mesh/store.h"

namespace ridgeline::mesh {

inline MeshOptions rank_options() {
  MeshOptions options;
  options.timeout = 60.0;
  options.one_machine = true;
  return options;
}

inline void run_ranks(int64_t count, const std::function<void(int64_t rank, std::shared_ptr<Store> store)>& function) {
  const std::shared_ptr<Store> store = Store::in_process();
  std::mutex mutex;
  std::exception_ptr first;
  std::exception_ptr first_broken;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      try {
        function(rank, store);
      } catch (const CommunicationFailure&) {
        const std::lock_guard lock(mutex);
        if (!first_broken) first_broken = std::current_exception();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
  if (first_broken) std::rethrow_exception(first_broken);
}

}  // namespace ridgeline::mesh
