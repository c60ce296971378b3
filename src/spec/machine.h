// Machine: what a planner must know of a computer and of the software that runs on it, as plain data.
//
// The tables [machine], [device], [links] say what the hardware is; [stack] what programs reach on it (efficiencies,
// latencies, overheads); [power], [operation] and [site] what a whole training meets (spec/machine_operation.h).
// Constants belong to a machine and to a software stack on it, never to a model or a strategy. Two systems of equal hardware differ in [stack] alone: `machine.base` names the file that the rest is taken from.
//
// Units are in the names; GB is 1e9 bytes, GiB 2^30, bandwidths are per direction. A file is read strictly: an unknown
// key, a value out of range (most often a wrong unit) or a missing figure is an InputError with file, line and key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/machine_operation.h"
#include "spec/shape_rates.h"
#include "spec/train.h"

namespace ridgeline::spec {

struct DeviceFacts {  // [device]: one device as software sees it (a GCD, a tile, a GPU)
  std::string name;
  double memory_gib = 0;  // that programs can allocate
  double memory_gb_per_s = 0;
  double peak_bf16_tflops = 0;  // dense
  double peak_fp16_tflops = 0;
  double peak_fp32_tflops = 0;  // as matrix products of fp32 tensors run by default
  double peak_fp8_tflops = 0;   // 0: the device has no matrix units for 8 bits
  int64_t compute_units = 1;    // that share the tiles of a matrix product
  double power_w = 0;           // board limit
};

struct LinkFacts {             // [links]: levels of links, from the closest to the farthest
  int64_t pair_devices = 1;    // devices of a package; 1: no such level
  double pair_gb_per_s = 0;    // between the devices of a package
  double node_gb_per_s = 0;    // a device's share of the links within a node that a ring can use
  int64_t domain_devices = 0;  // devices that node_gb_per_s reaches (a rack of NVLink); 0: devices_per_node
  int64_t nics = 1;            // network ports of a node
  double nic_gb_per_s = 0;     // of one of them
  double host_gb_per_s = 25;   // a device's share of the link to the host, each way, and of the host's memory
};

struct StackFacts {  // [stack]: what programs reach
  std::string name;
  std::string program = "ridgeline";  // whose way of running a step was measured (cost/recipe.h)
  double product_efficiency = 0.7;    // share of the peak that large matrix products reach
  double fp8_product_efficiency = 0.6;  // the same of products in 8 bits and their peak
  double product_half_depth = 200;    // inner size at which a product reaches half of that
  double product_half_tokens = 0;     // rows or columns (the smaller) at which it reaches half of that
  double attention_efficiency = 0.4;  // of fused attention's forward, share of the peak
  double attention_backward_efficiency = 0.3;
  double memory_efficiency = 0.8;  // share of memory_gb_per_s in element-wise kernels
  double launch_us = 5;            // least time of a kernel
  double layer_host_us = 0;        // host's time to issue a layer's forward; its backward takes as long
  double collective_host_us = 0;   // host's time to issue a collective
  double pair_efficiency = 0.75;   // share of a link level's bandwidth that collectives reach
  double node_efficiency = 0.8;
  double network_efficiency = 0.8;
  double message_efficiency = 0.8;    // share of the network's that messages between stages reach
  double node_latency_us = 10;        // of a collective's step within a node
  double network_latency_us = 20;     // of one between nodes
  double collective_us = 10;          // start of any collective
  double optimizer_efficiency = 0.6;  // share of memory_gb_per_s in the optimizer's pass
  double overlap_slowdown = 0.1;      // how much longer compute takes while a collective runs beside it
  double micro_batch_ms = 0;          // host's overhead of a forward and backward on a stage
  double step_ms = 0;                 // of an optimizer step
};

struct ReserveFacts {             // [reserve]: memory that no tensor of the program's own accounts for
  double context_gib = 1.0;       // driver, kernels, library workspaces
  double communicator_mib = 100;  // buffers of one communicator
  double slack_low = 0.02;        // allocator's fragmentation, share of what is allocated: likely
  double slack_high = 0.12;       // and at worst
};

// What a file's constants are good for: predictions of other models and strategies, or the recorded runs alone that they
// were fitted to, with constants that are right together and mean nothing each.
enum class Purpose { planning, curve_fit };

struct Machine {
  std::string name;
  std::string description;
  std::string base;
  Purpose purpose = Purpose::planning;
  int64_t devices_per_node = 1;
  int64_t nodes = 0;  // of the whole machine; 0: not known
  DeviceFacts device;
  LinkFacts links;
  StackFacts stack;
  ReserveFacts reserve;
  ShapeRates shapes;  // [shapes]
  PowerFacts power;
  OperationFacts operation;
  SiteFacts site;

  double peak_flops(Precision compute) const;
  double node_network_gb_per_s() const { return static_cast<double>(links.nics) * links.nic_gb_per_s; }
  int64_t domain_devices() const { return links.domain_devices > 0 ? links.domain_devices : devices_per_node; }
};

// `name` is that of a shipped machine ("frontier"), or the path of a file (holds a '/' or ends in .toml). Shipped files
// are looked for in $RIDGELINE_MACHINES, beside the installed program (../share/ridgeline/machines), and in the source.
// Throws InputError.
Machine load_machine(const std::string& name);
Machine parse_machine(const std::string& text, const std::string& file_name);
std::vector<std::string> machine_names();  // sorted

std::string to_string(Purpose purpose);

}  // namespace ridgeline::spec
