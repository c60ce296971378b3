#include "simulate/collective.h"

#include <gtest/gtest.h>

#include "simulate/kernel_time.h"

namespace ridgeline::simulate {
namespace {

using cost::MessageKind;

// 2 devices a package, 4 a node, 2 ports of 10 GB/s; every efficiency one and no latency.
spec::Machine plain_machine() {
  return spec::parse_machine(R"(
[machine]
name = "plain"
devices_per_node = 4
[device]
memory_gib = 16
memory_gb_per_s = 1000
peak_bf16_tflops = 100
peak_fp16_tflops = 100
peak_fp32_tflops = 50
compute_units = 1
[links]
pair_devices = 2
pair_gb_per_s = 200
node_gb_per_s = 100
nics = 2
nic_gb_per_s = 10
[stack]
product_efficiency = 1
product_half_depth = 0
memory_efficiency = 1
launch_us = 0
pair_efficiency = 1
node_efficiency = 1
network_efficiency = 1
message_efficiency = 1
node_latency_us = 0
network_latency_us = 0
collective_us = 0
)",
                             "plain.toml");
}

TEST(Collective, PlacesGroupsByTheirStride) {
  const spec::Machine machine = plain_machine();
  EXPECT_TRUE(place(machine, {2, 1}).in_package);
  EXPECT_FALSE(place(machine, {2, 2}).in_package);
  EXPECT_EQ(place(machine, {8, 1}).nodes, 2);
  EXPECT_EQ(place(machine, {8, 1}).per_node, 4);
  EXPECT_EQ(place(machine, {8, 2}).nodes, 4);
  EXPECT_EQ(place(machine, {8, 4}).nodes, 8);
}

TEST(Collective, RingsTakeTheSlowestLinkAndShareTheNetwork) {
  const spec::Machine machine = plain_machine();
  const double bytes = 1e9;
  EXPECT_DOUBLE_EQ(collective_seconds(machine, MessageKind::all_reduce, bytes, {2, 1}), 2 * 0.5 * 1e9 / 200e9);
  EXPECT_DOUBLE_EQ(collective_seconds(machine, MessageKind::all_gather, bytes, {4, 1}), 0.75 * 1e9 / 100e9);
  // One rank of four on each node: each of the node's four rings gets 5 GB/s; a whole node on one ring 20 GB/s.
  EXPECT_DOUBLE_EQ(collective_seconds(machine, MessageKind::reduce_scatter, bytes, {4, 4}), 0.75 * 1e9 / 5e9);
  EXPECT_DOUBLE_EQ(collective_seconds(machine, MessageKind::all_gather, bytes, {8, 1}), 7.0 / 8 * 1e9 / 20e9);
  EXPECT_EQ(collective_seconds(machine, MessageKind::all_reduce, bytes, {1, 1}), 0);
}

TEST(Collective, LatencyOfAnAllReduceOverNodesGrowsAsItsTree) {
  spec::Machine machine = plain_machine();
  machine.stack.network_latency_us = 10;
  const auto seconds = [&](int64_t nodes) {
    return collective_seconds(machine, MessageKind::all_reduce, 8, {nodes, 4});
  };
  EXPECT_NEAR(seconds(1024), 2 * 10 * 10e-6, 1e-7);
  EXPECT_NEAR(collective_seconds(machine, MessageKind::all_gather, 8, {1024, 4}), 1023 * 10e-6, 1e-7);
}

TEST(Collective, MessagesUseTheLinkBetweenTheirEnds) {
  const spec::Machine machine = plain_machine();
  EXPECT_DOUBLE_EQ(send_seconds(machine, 1e9, 1), 1e9 / 200e9);
  EXPECT_DOUBLE_EQ(send_seconds(machine, 1e9, 2), 1e9 / 100e9);
  EXPECT_DOUBLE_EQ(send_seconds(machine, 1e9, 4), 1e9 / 5e9);
}

TEST(KernelTime, RooflineOfAProduct) {
  const spec::Machine machine = plain_machine();
  cost::Kernel kernel{cost::KernelKind::product, 1, 4096, 4096, 4096, 0, 0};
  EXPECT_NEAR(kernel_seconds(machine, spec::Precision::bf16, kernel), 2 * 4096.0 * 4096 * 4096 / 100e12, 1e-9);
  kernel.k = 1;  // then the result's bytes bound it
  EXPECT_NEAR(kernel_seconds(machine, spec::Precision::bf16, kernel), 2 * (4096.0 * 4096 + 2 * 4096) / 1e12, 1e-9);
}

TEST(KernelTime, WavesAndThinShapesCost) {
  spec::Machine machine = plain_machine();
  machine.device.compute_units = 10;
  EXPECT_NEAR(product_efficiency(machine, 1, 256 * 10, 128, 4096), 1.0, 1e-12);
  EXPECT_LT(product_efficiency(machine, 1, 256 * 11, 128, 4096), 0.8);  // a second wave for one tile
  machine.stack.product_half_depth = 128;
  EXPECT_NEAR(product_efficiency(machine, 1, 256 * 10, 128, 128), 0.5, 1e-12);
}

}  // namespace
}  // namespace ridgeline::simulate
