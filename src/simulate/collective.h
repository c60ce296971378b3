// How long a collective takes on a group of ranks, by algorithm over the levels of links.
//
// Ranks are numbered as the mesh does, devices of a node after each other; a group is `size` ranks, `stride` apart.
// With n ranks on k nodes, g of them on each, S bytes of the whole tensor, a latencies, B the slowest link of the ring:
//   all-reduce      ring 2 (n-1) a + 2 (n-1)/n S / B, or over nodes a tree 2 log2(k) a + 2 (g-1) a_node + 2 S / B
//   all-gather, reduce-scatter   ring (n-1) a + (n-1)/n S / B
//   all-to-all      (n-1) a + (n-1)/n S / B
//   send            a + S / B
//   shift           a + S / B, all ranks of a ring to the next at once: the slowest link counts
// (Thakur, Rabenseifner, Gropp 2005; NCCL's own cost model chooses likewise.) Groups of the same kind run at the same
// time: the d / g groups of a node share its network ports evenly, so B between nodes is (g / d) of the node's.
#pragma once

#include <cstdint>

#include "cost/kernels.h"
#include "spec/machine.h"

namespace ridgeline::simulate {

struct Group {
  int64_t size = 1;
  int64_t stride = 1;
};

// How a group lies on the machine.
struct Placing {
  int64_t per_node = 1;  // ranks of the group on one node (or NVLink domain)
  int64_t nodes = 1;
  bool in_package = false;
};
Placing place(const spec::Machine& machine, const Group& group);

double collective_seconds(const spec::Machine& machine, cost::MessageKind kind, double bytes, const Group& group);

// One message between ranks `distance` apart while all ranks of their nodes send one.
double send_seconds(const spec::Machine& machine, double bytes, int64_t distance);

}  // namespace ridgeline::simulate
