#include "spec/machine.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/schema.h"
#include "core/text.h"
#include "core/text_file.h"

namespace ridgeline::spec {
namespace {

using Path = std::filesystem::path;
constexpr int kMostBases = 4;

void bind_hardware(Schema& schema, Machine& machine) {
  schema.table("machine", "The machine");
  schema.key("machine.name", machine.name, "name");
  schema.key("machine.description", machine.description, "a sentence");
  schema.key("machine.base", machine.base, "machine whose file gives what this one leaves out");
  schema.choice<Purpose>("machine.purpose", machine.purpose,
                         {{"planning", Purpose::planning}, {"curve fit", Purpose::curve_fit}},
                         "curve fit: right for runs like those that it was fitted to, and for nothing else");
  schema.key("machine.devices_per_node", machine.devices_per_node, "devices of a node", between(1, 1024));
  schema.key("machine.nodes", machine.nodes, "nodes in all; 0: not known", between(0, 1e6));

  DeviceFacts& device = machine.device;
  const Interval tflops = between(1e-3, 1e5);
  schema.table("device", "One device as software sees it");
  schema.key("device.name", device.name, "name");
  schema.key("device.memory_gib", device.memory_gib, "memory that programs can allocate, GiB", between(0.01, 1e4));
  schema.key("device.memory_gb_per_s", device.memory_gb_per_s, "memory bandwidth, GB/s", between(1, 1e5));
  schema.key("device.peak_bf16_tflops", device.peak_bf16_tflops, "dense peak, TFLOP/s", tflops);
  schema.key("device.peak_fp16_tflops", device.peak_fp16_tflops, "dense peak, TFLOP/s", tflops);
  schema.key("device.peak_fp32_tflops", device.peak_fp32_tflops, "peak of fp32 products, TFLOP/s", tflops);
  schema.key("device.peak_fp8_tflops", device.peak_fp8_tflops, "dense peak of 8 bits, TFLOP/s; 0: none",
             between(0, 1e6));
  schema.key("device.compute_units", device.compute_units, "units that share a product's tiles", between(1, 1e5));
  schema.key("device.power_w", device.power_w, "board limit, W", between(0, 1e5));

  LinkFacts& links = machine.links;
  const Interval gb_per_s = between(0, 1e4);
  schema.table("links", "Levels of links, bandwidths per direction");
  schema.key("links.pair_devices", links.pair_devices, "devices of a package; 1: no such level", between(1, 64));
  schema.key("links.pair_gb_per_s", links.pair_gb_per_s, "within a package, GB/s", gb_per_s);
  schema.key("links.node_gb_per_s", links.node_gb_per_s, "of a device within a node, GB/s", gb_per_s);
  schema.key("links.domain_devices", links.domain_devices, "devices that those links reach; 0: a node's",
             between(0, 1e4));
  schema.key("links.nics", links.nics, "network ports of a node", between(1, 64));
  schema.key("links.nic_gb_per_s", links.nic_gb_per_s, "of one port, GB/s (200 Gb/s are 25)", gb_per_s);
  schema.key("links.host_gb_per_s", links.host_gb_per_s,
             "a device's share of the link to the host and of the host's memory, GB/s; for strategy.offload_optimizer",
             Interval{.low = 0, .high = 1e5, .low_open = true});
}

void bind_software(Schema& schema, Machine& machine) {
  StackFacts& stack = machine.stack;
  const Interval share{.low = 0, .high = 1, .low_open = true};
  const Interval microseconds = between(0, 1e5);
  schema.table("stack", "What programs reach");
  schema.key("stack.name", stack.name, "versions of what was measured");
  schema.choice("stack.program", stack.program,
                {"ridgeline", "megatron", "megatron-core", "nemo", "deepspeed", "deepspeed-bf16"},
                "whose way of running a step was measured");
  schema.key("stack.product_efficiency", stack.product_efficiency, "large matrix products, share of peak", share);
  schema.key("stack.fp8_product_efficiency", stack.fp8_product_efficiency, "the same of products in 8 bits", share);
  schema.key("stack.product_half_depth", stack.product_half_depth, "inner size of half efficiency", between(0, 1e5));
  schema.key("stack.product_half_tokens", stack.product_half_tokens, "outer size of half efficiency", between(0, 1e5));
  schema.key("stack.attention_efficiency", stack.attention_efficiency, "fused attention forward, share of peak", share);
  schema.key("stack.attention_backward_efficiency", stack.attention_backward_efficiency, "and backward", share);
  schema.key("stack.memory_efficiency", stack.memory_efficiency, "element-wise kernels, share of bandwidth", share);
  schema.key("stack.launch_us", stack.launch_us, "least time of a kernel, us", microseconds);
  schema.key("stack.layer_host_us", stack.layer_host_us, "host's time to issue a layer's forward, us", microseconds);
  schema.key("stack.collective_host_us", stack.collective_host_us, "host's time to issue a collective, us",
             microseconds);
  schema.key("stack.pair_efficiency", stack.pair_efficiency, "collectives within a package, share of link", share);
  schema.key("stack.node_efficiency", stack.node_efficiency, "within a node", share);
  schema.key("stack.network_efficiency", stack.network_efficiency, "between nodes", share);
  schema.key("stack.message_efficiency", stack.message_efficiency, "messages between stages, share of the network",
             share);
  schema.key("stack.node_latency_us", stack.node_latency_us, "of a collective's step in a node, us", microseconds);
  schema.key("stack.network_latency_us", stack.network_latency_us, "of one between nodes, us", microseconds);
  schema.key("stack.collective_us", stack.collective_us, "start of a collective, us", microseconds);
  schema.key("stack.optimizer_efficiency", stack.optimizer_efficiency, "optimizer's pass, share of bandwidth", share);
  schema.key("stack.overlap_slowdown", stack.overlap_slowdown, "of compute beside a collective", between(0, 10));
  schema.key("stack.micro_batch_ms", stack.micro_batch_ms, "host's overhead of a micro-batch, ms", between(0, 1e4));
  schema.key("stack.step_ms", stack.step_ms, "host's overhead of a step, ms", between(0, 1e5));

  ReserveFacts& reserve = machine.reserve;
  schema.table("reserve", "Memory beside the program's tensors");
  schema.key("reserve.context_gib", reserve.context_gib, "driver, kernels, workspaces, GiB", between(0, 100));
  schema.key("reserve.communicator_mib", reserve.communicator_mib, "buffers of a communicator, MiB", between(0, 1e5));
  schema.key("reserve.slack_low", reserve.slack_low, "allocator's slack, share, likely", between(0, 1));
  schema.key("reserve.slack_high", reserve.slack_high, "allocator's slack, share, at worst", between(0, 1));
}

Schema& bind(Schema& schema, Machine& machine) {
  bind_hardware(schema, machine);
  bind_software(schema, machine);
  bind_operation(schema, machine.power, machine.operation, machine.site);
  return schema;
}

void require(const std::string& file, double value, const char* key, const char* meaning) {
  if (value > 0) return;
  throw InputError("{}: {} is missing: expected {}; write it, or name a machine.base that has it", file, key, meaning);
}

void check(const Machine& machine, const std::string& file) {
  if (machine.name.empty()) throw InputError("{}: machine.name is missing: expected a short name", file);
  require(file, machine.device.memory_gib, "device.memory_gib", "GiB");
  require(file, machine.device.memory_gb_per_s, "device.memory_gb_per_s", "GB/s");
  require(file, machine.device.peak_bf16_tflops, "device.peak_bf16_tflops", "TFLOP/s");
  require(file, machine.device.peak_fp16_tflops, "device.peak_fp16_tflops", "TFLOP/s");
  require(file, machine.device.peak_fp32_tflops, "device.peak_fp32_tflops", "TFLOP/s");
  if (machine.devices_per_node > 1) require(file, machine.links.node_gb_per_s, "links.node_gb_per_s", "GB/s");
  require(file, machine.links.nic_gb_per_s, "links.nic_gb_per_s", "GB/s");
  if (machine.links.pair_devices > 1) require(file, machine.links.pair_gb_per_s, "links.pair_gb_per_s", "GB/s");
  if (machine.devices_per_node % machine.links.pair_devices != 0) {
    throw InputError("{}: links.pair_devices = {}: does not divide machine.devices_per_node = {}", file,
                     machine.links.pair_devices, machine.devices_per_node);
  }
  if (machine.links.domain_devices > 0 && machine.links.domain_devices % machine.devices_per_node != 0) {
    throw InputError("{}: links.domain_devices = {}: expected a multiple of machine.devices_per_node = {}", file,
                     machine.links.domain_devices, machine.devices_per_node);
  }
  if (machine.reserve.slack_high < machine.reserve.slack_low) {
    throw InputError("{}: reserve.slack_high = {}: expected at least reserve.slack_low = {}", file,
                     machine.reserve.slack_high, machine.reserve.slack_low);
  }
  check(machine.site, file);
}

std::vector<Path> folders() {
  std::vector<Path> found;
  if (const char* given = std::getenv("RIDGELINE_MACHINES")) found.emplace_back(given);
  std::error_code ignored;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!program.empty()) found.push_back(program.parent_path().parent_path() / "share/ridgeline/machines");
#ifdef RIDGELINE_MACHINES_FOLDER
  found.emplace_back(RIDGELINE_MACHINES_FOLDER);
#endif
  return found;
}

std::string find_file(const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".toml")) return name;
  for (const Path& folder : folders()) {
    std::error_code ignored;
    const Path file = folder / (name + ".toml");
    if (std::filesystem::is_regular_file(file, ignored)) return file.string();
  }
  const std::vector<std::string> names = machine_names();
  throw InputError("machine '{}': no such machine{} (there are {}; or give the path of a file)", name,
                   did_you_mean(name, names), names.empty() ? "none: set RIDGELINE_MACHINES" : join(names));
}

Machine load(const std::string& name, int depth);

// The lists of [shapes] as they stand in a file; none given: those of the base stay.
struct ShapeWords {
  std::vector<std::string> products, collectives;
};

void bind_shapes(Schema& schema, ShapeWords& words) {
  schema.table("shapes", "Rates of single shapes that were measured or fitted");
  schema.words("shapes.products", words.products,
               "\"BATCH x M x N x K: FACTOR\": time of a product over the formula's");
  schema.words("shapes.collectives", words.collectives, "\"KIND RANKS (RANKS a node) BYTES: FACTOR\"");
}

void take_shapes(const ShapeWords& words, const std::string& file, ShapeRates& rates) {
  const auto read = [&file](const char* key, const std::vector<std::string>& lines, auto& target, auto parse) {
    if (lines.empty()) return;
    target.clear();
    for (const std::string& line : lines) {
      try {
        target.push_back(parse(line));
      } catch (const InputError& error) {
        throw InputError("{}: shapes.{}: {}", file, key, error.what());
      }
    }
  };
  read("products", words.products, rates.products, parse_product_rate);
  read("collectives", words.collectives, rates.collectives, parse_collective_rate);
}

// Reads `text` on top of what its base says: defaults of the second reading are the base's figures.
Machine parse(const std::string& text, const std::string& file_name, int depth) {
  Machine machine;
  ShapeWords shapes;
  {
    Schema schema;
    bind(schema, machine);
    bind_shapes(schema, shapes);
    schema.read_text(text, file_name);
    schema.apply();
  }
  take_shapes(shapes, file_name, machine.shapes);
  if (machine.base.empty()) {
    check(machine, file_name);
    return machine;
  }
  if (depth >= kMostBases) {
    throw InputError("{}: machine.base = '{}': more than {} files in a row; do they name each other?", file_name,
                     machine.base, kMostBases);
  }
  Machine derived = load(machine.base, depth + 1);
  Schema schema;
  bind(schema, derived);
  ShapeWords own;
  bind_shapes(schema, own);
  schema.read_text(text, file_name);
  schema.apply();
  take_shapes(own, file_name, derived.shapes);
  check(derived, file_name);
  return derived;
}

Machine load(const std::string& name, int depth) {
  const std::string file = find_file(name);
  return parse(read_text_file(file, "a machine file (TOML)"), file, depth);
}

}  // namespace

double Machine::peak_flops(Precision compute) const {
  switch (compute) {
    case Precision::fp32:
      return device.peak_fp32_tflops * 1e12;
    case Precision::bf16:
      return device.peak_bf16_tflops * 1e12;
    case Precision::fp16:
      return device.peak_fp16_tflops * 1e12;
  }
  throw InternalError("Precision {}", static_cast<int>(compute));
}

std::string to_string(Purpose purpose) { return purpose == Purpose::planning ? "planning" : "curve fit"; }

Machine load_machine(const std::string& name) { return load(name, 0); }

Machine parse_machine(const std::string& text, const std::string& file_name) { return parse(text, file_name, 0); }

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const Path& folder : folders()) {
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
      if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace ridgeline::spec
