// Machine files: those that are shipped, and what is refused.
#include "spec/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "source_folder.h"
#include "spec/device_peaks.h"

namespace ridgeline::spec {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class Machines : public testing::Test {
 protected:
  void SetUp() override { setenv("RIDGELINE_MACHINES", RIDGELINE_SOURCE_DIR "/machines", 1); }
  void TearDown() override { unsetenv("RIDGELINE_MACHINES"); }
};

TEST_F(Machines, ShippedOnesAreWhole) {
  const std::vector<std::string> names = machine_names();
  EXPECT_GE(names.size(), 15u);
  for (const char* wanted : {"frontier", "lumi", "selene", "dgx-h100", "h200", "b200", "gb200-nvl72", "mi300x",
                             "aurora", "perlmutter-40", "perlmutter-80", "polaris", "alps", "summit", "local-cpu"}) {
    EXPECT_THAT(names, testing::Contains(wanted));
  }
  for (const std::string& name : names) {
    const Machine machine = load_machine(name);
    EXPECT_EQ(machine.name, name);
    EXPECT_GT(machine.peak_flops(Precision::bf16), 0) << name;
    EXPECT_GE(machine.peak_flops(Precision::bf16), machine.peak_flops(Precision::fp32)) << name;
    // A ring cannot be faster than the memory that it reads.
    EXPECT_LE(machine.links.node_gb_per_s, machine.device.memory_gb_per_s) << name;
  }
}

// A processor has no data sheet's peak; every other device is in the table, and the file says what the table says.
TEST_F(Machines, PeaksAreThoseOfTheDeviceTable) {
  for (const std::string& name : machine_names()) {
    const DeviceFacts device = load_machine(name).device;
    if (device.name == "CPU") continue;
    const std::optional<DevicePeaks> peaks = device_peaks(device.name);
    ASSERT_TRUE(peaks) << name << ": " << device.name;
    EXPECT_EQ(device.peak_fp16_tflops, peaks->fp16) << name;
    EXPECT_EQ(device.peak_fp32_tflops, peaks->fp32) << name;
    // Without bf16 units, products run in fp32.
    EXPECT_EQ(device.peak_bf16_tflops, peaks->bf16 > 0 ? peaks->bf16 : peaks->fp32) << name;
  }
}

TEST_F(Machines, FitsOfRecordedRunsSaySo) {
  for (const char* name : {"frontier-neox", "aurora-torchtitan", "a100-foundry", "a100-foundry-40", "h100-foundry",
                           "a100-vtrain", "jean-zay-a100"}) {
    EXPECT_EQ(load_machine(name).purpose, Purpose::curve_fit) << name;
  }
  for (const char* name : {"frontier", "lumi", "selene", "h200"}) {
    EXPECT_EQ(load_machine(name).purpose, Purpose::planning) << name;
  }
}

TEST_F(Machines, LumiIsFrontierButForItsStack) {
  const Machine lumi = load_machine("lumi"), frontier = load_machine("frontier");
  EXPECT_EQ(lumi.device.memory_gb_per_s, frontier.device.memory_gb_per_s);
  EXPECT_EQ(lumi.links.nic_gb_per_s, frontier.links.nic_gb_per_s);
  EXPECT_EQ(lumi.stack.product_efficiency, frontier.stack.product_efficiency);
  EXPECT_NE(lumi.stack.program, frontier.stack.program);
  EXPECT_EQ(lumi.base, "frontier");
}

TEST_F(Machines, JobsAreAsLongAsTheSiteAllows) {
  const SiteFacts frontier = load_machine("frontier").site;
  for (const auto& [nodes, hours] : {std::pair<int64_t, double>{1, 2}, {91, 2}, {92, 6}, {183, 6}, {184, 12}, {9000, 12}}) {
    EXPECT_EQ(longest_job_hours(frontier, nodes, "m.toml"), hours) << nodes;
  }
  EXPECT_FALSE(longest_job_hours(load_machine("selene").site, 10, "m.toml"));
}

TEST_F(Machines, FaultsNameFileLineAndKey) {
  const auto refused = [](const char* text, const char* words) {
    EXPECT_THAT([text] { parse_machine(text, "m.toml"); }, ThrowsMessage<InputError>(HasSubstr(words))) << text;
  };
  refused("[machine]\nname = \"x\"\nbase = \"frontier\"\n[device]\nmemory_gib = 68719476736\n",
          "m.toml:5: device.memory_gib: expected");
  refused("[machine]\nname = \"x\"\nbase = \"frontier\"\n[device]\nmemory_gb = 64\n",
          "m.toml:5: unknown key 'device.memory_gb'; did you mean 'device.memory_gib'?");
  refused("[machine]\nname = \"x\"\n", "device.memory_gib is missing");
  refused("[machine]\nbase = \"frontier\"\ndevices_per_node = 7\n", "links.pair_devices = 2");
  refused("[machine]\nname = \"x\"\nbase = \"frontier\"\n[site]\nwalltime = [\"5\"]\n", "site.walltime: \"5\": expected");
  refused("[machine]\nname = \"x\"\nbase = \"frontier\"\n[site]\nwalltime = [\"5: 2\", \"4: 1\"]\n", "ascending");
  refused("[machine]\nname = \"x\"\nbase = \"frontier\"\n[site]\nenvironment = [\"A B=1\"]\n", "expected \"NAME=VALUE\"");
  refused("[machine]\nname = \"x\"\nbase = \"frontier\"\n[power]\npue = 0.5\n", "power.pue");
  refused("[machine]\nbase = \"frontir\"\n", "did you mean 'frontier'?");
  refused("[machine]\nbase = \"frontier\"\n[stack]\nproduct_efficiency = 49\n", "m.toml:4: stack.product_efficiency");
  EXPECT_THAT([] { load_machine("selenne"); }, ThrowsMessage<InputError>(HasSubstr("did you mean 'selene'?")));
  EXPECT_THAT([] { load_machine("./nowhere.toml"); }, ThrowsMessage<InputError>(HasSubstr("cannot read")));
}

}  // namespace
}  // namespace ridgeline::spec
