// Collectives of one rank through a Segment. Each call returns when this rank's part is done; all ranks of the group
// make the same calls in the same order, one at a time.
//
// Protocol. A tensor goes through in chunks of at most a slot. Chunk number k (counted over all operations) uses half
// k % 2 of the slots. In each chunk a rank
//   1. waits until all ranks have begun chunk k - 1, and so have done with chunk k - 2 that used the same half;
//   2. writes into its own slot what others need, and signals by counting its `arrivals` up;
//   3. waits for the arrivals of all ranks (of the root, in a broadcast), and reads the others' slots.
// Every rank signals equally often in each operation, so one rank's count means the same as another's. Step 1 costs
// nothing but after broadcasts: where step 3 waits for all, it has been seen already.
//
// A sum of a large tensor has a second round between 2 and 3: each rank adds up its share of the chunk over all slots,
// writes the result into its slot in place of that share and signals again. In rank order always, so the bits of the
// result are the same on all ranks, and the same whatever the chunks.
//
//   bytes copied or read by a rank, n ranks, message of b bytes (in reduce_scatter and all_to_all, the input)
//   all_reduce large     b written + b read and reduced + b read
//   all_reduce small     b written + n b read and reduced; one round instead of two
//   all_gather           b/n written + b read
//   reduce_scatter       b written + b read and reduced
//   all_to_all           b written + b read
//   broadcast            b written by the root, b read by each other
//
// A wait ends with Failure when a missing rank has left or its process has ended, or after the membership's timeout.
// After a Failure the counts no longer agree: the group is lost.
#pragma once

#include <cstdint>
#include <vector>

#include "mesh/shared_memory/membership.h"
#include "mesh/shared_memory/reduce.h"

namespace ridgeline::mesh::shared_memory {

class Collectives {
 public:
  explicit Collectives(const Membership& membership);

  void all_reduce(void* data, int64_t elements, Element element, Reduction reduction);
  // `in` may be this rank's part of `out`.
  void all_gather(void* out, const void* in, int64_t bytes_of_part);
  // `out` may be this rank's part of `in`.
  void reduce_scatter(void* out, const void* in, int64_t elements_of_part, Element element);
  void broadcast(void* data, int64_t bytes, int64_t root);
  // `out` may be `in`.
  void all_to_all(void* out, const void* in, int64_t bytes_of_part);
  // The same with parts of any size, in rank order; `out` is not `in`. A round of their sizes comes first, so that all ranks
  // know how many chunks the largest part takes.
  void all_to_all_uneven(void* out, const std::vector<int64_t>& out_bytes, const void* in,
                         const std::vector<int64_t>& in_bytes);
  void barrier();

 private:
  static constexpr int64_t kAll = -1;

  void begin_chunk();  // step 1
  void signal();
  void await(int64_t from);
  void await_arrivals(uint32_t arrivals, int64_t from);
  bool arrived(uint32_t arrivals, int64_t from) const;

  int64_t largest_part(const std::vector<int64_t>& in_bytes);  // of those that any rank sends to any
  std::byte* slot(int64_t rank) const { return membership_.segment().slot(rank, half_); }
  void all_reduce_small(std::byte* data, int64_t elements, Element element, Reduction reduction);
  void all_reduce_chunk(std::byte* data, int64_t elements, Element element, Reduction reduction);

  const Membership& membership_;
  const int64_t rank_;
  const int64_t size_;
  const int64_t slot_bytes_;
  uint32_t arrivals_ = 0;        // signals so far; wraps
  uint32_t chunk_arrivals_ = 0;  // the count at the last chunk's first signal
  uint32_t seen_ = 0;            // all ranks have been seen to have signalled so often
  int64_t half_ = 0;
};

}  // namespace ridgeline::mesh::shared_memory
