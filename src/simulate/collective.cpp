#include "simulate/collective.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "simulate/shape_factor.h"

namespace ridgeline::simulate {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMicro = 1e-6;

// Network bandwidth of one device where all devices of a node use it.
double network_share(const spec::Machine& machine) {
  return machine.node_network_gb_per_s() * kGiga / static_cast<double>(machine.devices_per_node);
}

}  // namespace

Placing place(const spec::Machine& machine, const Group& group) {
  const int64_t domain = machine.domain_devices();
  Placing result;
  if (group.stride >= domain) {
    result.nodes = group.size;
    return result;
  }
  result.per_node = std::min(group.size, std::max<int64_t>(1, domain / group.stride));
  result.nodes = (group.size + result.per_node - 1) / result.per_node;
  result.in_package = group.size * group.stride <= machine.links.pair_devices;
  return result;
}

namespace {

// Bytes a second that each rank of a ring over a group gets.
double ring_bytes_per_second(const spec::Machine& machine, const Group& group) {
  const Placing where = place(machine, group);
  const spec::StackFacts& stack = machine.stack;
  if (where.in_package) return machine.links.pair_gb_per_s * kGiga * stack.pair_efficiency;
  const double node = machine.links.node_gb_per_s * kGiga * stack.node_efficiency;
  if (where.nodes == 1) return node;
  const double network = network_share(machine) * static_cast<double>(where.per_node) * stack.network_efficiency;
  return where.per_node > 1 ? std::min(node, network) : network;
}

// By the formulas alone, without the machine's table of shapes.
double formula_seconds(const spec::Machine& machine, cost::MessageKind kind, double bytes, const Group& group) {
  const spec::StackFacts& stack = machine.stack;
  const Placing where = place(machine, group);
  const double n = static_cast<double>(group.size), k = static_cast<double>(where.nodes);
  const double bandwidth = ring_bytes_per_second(machine, group);
  const double step = stack.node_latency_us * kMicro, far_step = stack.network_latency_us * kMicro;
  const double far_steps = where.nodes > 1 ? k - 1 : 0;
  // Of the n - 1 steps of a ring, as many cross nodes as there are nodes less one.
  const double ring_latency = far_steps * far_step + (n - 1 - far_steps) * step;
  const double part = (n - 1) / n * bytes / bandwidth;
  const double start = stack.collective_us * kMicro;
  switch (kind) {
    case cost::MessageKind::all_reduce: {
      const double ring = 2 * ring_latency + 2 * part;
      if (where.nodes == 1) return start + ring;
      const double hops = std::ceil(std::log2(k));
      const double tree =
          2 * hops * far_step + 2 * static_cast<double>(where.per_node - 1) * step + 2 * bytes / bandwidth;
      return start + std::min(ring, tree);
    }
    case cost::MessageKind::all_gather:
    case cost::MessageKind::reduce_scatter:
    case cost::MessageKind::all_to_all:
      return start + ring_latency + part;
    case cost::MessageKind::shift:
      return start + (where.nodes > 1 ? far_step : step) + bytes / bandwidth;
    case cost::MessageKind::send:
      break;
  }
  throw InternalError("MessageKind {}", static_cast<int>(kind));
}

double send_formula_seconds(const spec::Machine& machine, double bytes, int64_t distance) {
  const spec::StackFacts& stack = machine.stack;
  const double start = stack.collective_us * kMicro;
  if (distance < machine.links.pair_devices) {
    return start + stack.node_latency_us * kMicro +
           bytes / (machine.links.pair_gb_per_s * kGiga * stack.pair_efficiency);
  }
  if (distance < machine.domain_devices()) {
    return start + stack.node_latency_us * kMicro +
           bytes / (machine.links.node_gb_per_s * kGiga * stack.node_efficiency);
  }
  return start + stack.network_latency_us * kMicro + bytes / (network_share(machine) * stack.message_efficiency);
}

}  // namespace

double collective_seconds(const spec::Machine& machine, cost::MessageKind kind, double bytes, const Group& group) {
  if (group.size <= 1) return 0;
  if (kind == cost::MessageKind::send) return send_seconds(machine, bytes, group.stride);
  const double seconds = formula_seconds(machine, kind, bytes, group);
  const Placing where = place(machine, group);
  if (kind == cost::MessageKind::shift) {  // messages of pairs
    const int64_t on_node = where.nodes == 1 ? 2 : 1;
    return seconds * collective_factor(machine.shapes, cost::MessageKind::send, 2, on_node, bytes);
  }
  return seconds * collective_factor(machine.shapes, kind, group.size, where.per_node, bytes);
}

double send_seconds(const spec::Machine& machine, double bytes, int64_t distance) {
  const int64_t on_node = distance < machine.domain_devices() ? 2 : 1;
  return send_formula_seconds(machine, bytes, distance) *
         collective_factor(machine.shapes, cost::MessageKind::send, 2, on_node, bytes);
}

}  // namespace ridgeline::simulate
