// BackEnd: what carries a group's messages, behind Communicator; one implementation a file (gloo.cpp, nccl.cpp,
// shared_memory/back_end.cpp, fake.cpp).
//
// Callers go through Communicator, which checks arguments, names errors and tells observers. An implementation may take
// for granted that tensors are contiguous, of a known type, on the group's device, not empty (but for all_to_all_uneven),
// and of fitting sizes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mesh/reduction.h"
#include "mesh/store.h"
#include "platform/device.h"

namespace ridgeline::mesh {

// One operation in flight; a null pointer stands for one that is done.
class Transfer {
 public:
  virtual ~Transfer() = default;
  // On an accelerator the device's current stream waits, not the caller.
  virtual void wait() = 0;
  virtual bool done() = 0;
};

class BackEnd {
 public:
  virtual ~BackEnd() = default;
  // As users know it.
  virtual std::string name() const = 0;
  virtual std::shared_ptr<Transfer> all_reduce(at::Tensor tensor, Reduction reduction) = 0;
  virtual std::shared_ptr<Transfer> all_gather(at::Tensor out, at::Tensor in) = 0;
  virtual std::shared_ptr<Transfer> reduce_scatter(at::Tensor out, at::Tensor in) = 0;
  virtual std::shared_ptr<Transfer> broadcast(at::Tensor tensor, int64_t root) = 0;
  virtual std::shared_ptr<Transfer> all_to_all(at::Tensor out, at::Tensor in) = 0;
  virtual std::shared_ptr<Transfer> all_to_all_uneven(at::Tensor out, std::vector<int64_t> out_rows, at::Tensor in,
                                                      std::vector<int64_t> in_rows) = 0;
  virtual std::shared_ptr<Transfer> send(at::Tensor tensor, int64_t peer, int64_t tag) = 0;
  virtual std::shared_ptr<Transfer> receive(at::Tensor tensor, int64_t peer, int64_t tag) = 0;
  // Sends `in` to one peer and receives `out` from one, which may be the same, as one operation.
  virtual std::shared_ptr<Transfer> exchange(at::Tensor out, int64_t from, at::Tensor in, int64_t to);
  virtual std::shared_ptr<Transfer> barrier() = 0;
};

enum class BackEndKind {
  automatic,  // nccl on cuda devices; on the CPU shared_memory where all ranks run on one machine, else gloo
  gloo,
  shared_memory,
  nccl,
  fake,
};

// All that a back end needs to set up a group. Members are ranks of the mesh, ascending; `rank` is the place among
// them.
struct GroupSetup {
  std::string name;
  std::vector<int64_t> members;
  int64_t rank = 0;
  std::shared_ptr<Store> store;  // its keys under `name` are free
  platform::Device device;
  double timeout = 600.0;    // seconds, of each operation
  bool one_machine = false;  // all ranks of the job run here: sockets need not leave it
};

std::shared_ptr<BackEnd> make_gloo(const GroupSetup& setup);
// All members must call it. Where any of them cannot share memory with the others, all get none, and `fault` says why.
std::shared_ptr<BackEnd> make_shared_memory(const GroupSetup& setup, std::string& fault);
// Throws Failure in a build without NCCL (no_nccl.cpp).
std::shared_ptr<BackEnd> make_nccl(const GroupSetup& setup);
bool have_nccl();
// Moves nothing and is always done at once: all_gather repeats the input, reduce_scatter takes this rank's part of its
// own input, receive gives zeros. For dry runs of one rank of a mesh of any size; works on meta tensors too.
std::shared_ptr<BackEnd> make_fake(int64_t rank, int64_t size);

}  // namespace ridgeline::mesh
