// Machines in words, as file trees: what the checks say of them.
#include "doctor/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

namespace ridgeline::doctor {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class Doctor : public testing::Test {
 protected:
  Doctor() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ridgeline-doctor-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    host_.root = pattern;
    host_.variable = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      if (found == variables_.end()) return std::nullopt;
      return found->second;
    };
    host_.usable_cores = 8;
    host_.memory_bytes = int64_t{64} << 30;
    host_.shared_memory_bytes = int64_t{8} << 30;
    host_.open_files = 65536;
    host_.locked_bytes = unlimited;
    engine_.torch = "2.13.0";
  }
  ~Doctor() override { std::filesystem::remove_all(host_.root); }

  void file(const std::string& path, const std::string& text = "") {
    const std::filesystem::path whole = host_.root / std::filesystem::path(path).relative_path();
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text << '\n';
  }

  // "grade subject: text -> advice" of each.
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const Finding& finding : check_all(host_, engine_)) {
      lines.push_back(to_string(finding.grade) + " " + finding.subject + ": " + finding.text + " -> " + finding.advice);
    }
    return lines;
  }
  void expect(const std::string& part) const { EXPECT_THAT(lines(), Contains(HasSubstr(part))); }
  void expect_no_faults() const {
    EXPECT_THAT(lines(), Not(Contains(HasSubstr("problem "))));
    EXPECT_THAT(lines(), Not(Contains(HasSubstr("note "))));
  }

  Host host_;
  EngineFacts engine_;
  std::map<std::string, std::string> variables_;
};

TEST_F(Doctor, APlainMachineIsWell) {
  expect_no_faults();
  expect("ok devices: no accelerator: ranks compute on the CPU");
  expect("ok memory: 64.0 GiB may be used");
  expect("this process is one rank");
}

TEST_F(Doctor, TorchThatDoesNotFitTheDevices) {
  for (const char* name : {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"}) file(name);
  expect(
      "problem devices: the kernel shows 2 NVIDIA devices, libtorch 2.13.0 sees none -> Check that torch is a CUDA "
      "build");
}

TEST_F(Doctor, ProcessorsAreNoDevicesOfKfd) {
  file("/sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0");
  file("/sys/class/kfd/kfd/topology/nodes/4/gpu_id", "51803");
  expect("the kernel shows 1 AMD device, libtorch");
}

TEST_F(Doctor, HiddenDevicesAreNoted) {
  for (const char* name : {"/dev/nvidia0", "/dev/nvidia1"}) file(name);
  engine_.devices = {{"cuda", "NVIDIA H100", int64_t{80} << 30}};
  engine_.has_nccl = true;
  variables_["CUDA_VISIBLE_DEVICES"] = "1";
  expect("ok devices: 1 x NVIDIA H100, 80.0 GiB");
  expect("note devices: CUDA_VISIBLE_DEVICES=1 hides 1 of 2 devices");
}

TEST_F(Doctor, ContainersSmallSharedMemory) {
  host_.shared_memory_bytes = 64 << 20;
  expect("note memory: 64.0 MiB free in /dev/shm -> In a container start it with --shm-size=8g");
  host_.shared_memory_bytes = 0;
  expect("problem memory: no /dev/shm");
}

TEST_F(Doctor, NamesAnInterfaceThatIsNotUp) {
  file("/sys/class/net/lo/operstate", "unknown");
  file("/sys/class/net/hsn0/operstate", "up");
  file("/sys/class/net/eth1/operstate", "down");
  variables_["NCCL_SOCKET_IFNAME"] = "hsn0,eth1";
  expect("problem network: NCCL_SOCKET_IFNAME=hsn0,eth1: no interface eth1 is up -> Name one of hsn0");
  variables_["NCCL_SOCKET_IFNAME"] = "hsn";
  expect_no_faults();
}

TEST_F(Doctor, SlingshotWithoutItsPluginFallsBackToTcp) {
  for (const char* card : {"cxi0", "cxi1"}) file("/sys/class/cxi/" + std::string(card) + "/x");
  engine_.devices = {{"cuda", "AMD Instinct MI250X", int64_t{64} << 30}};
  engine_.has_nccl = true;
  variables_["LD_LIBRARY_PATH"] = "/opt/a:/opt/plugin";
  expect("problem network: no network plugin of NCCL or RCCL in LD_LIBRARY_PATH");
  expect("note network: FI_MR_CACHE_MONITOR is not set");
  file("/opt/plugin/librccl-net.so");
  variables_["FI_MR_CACHE_MONITOR"] = "kdreg2";
  variables_["FI_CXI_DISABLE_HOST_REGISTER"] = "1";
  expect_no_faults();
}

TEST_F(Doctor, RdmaNeedsLockedMemory) {
  file("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  file("/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN");
  host_.locked_bytes = 8 << 20;
  expect("ok network: 2 RDMA cards: mlx5_0, mlx5_1");
  expect("note network: the link of mlx5_1 is not active");
  expect("problem network: a process may lock 8.00 MiB of memory");
}

TEST_F(Doctor, DevicesWithoutNccl) {
  engine_.devices = {{"cuda", "NVIDIA H100", 1}};
  expect("problem network: this build of Ridgeline is without NCCL or RCCL");
}

TEST_F(Doctor, ContradictingLauncherVariables) {
  variables_["RANK"] = "5";
  variables_["WORLD_SIZE"] = "2";
  expect("problem launcher: ");
}

TEST_F(Doctor, SaysWhyTheEngineCouldNotBeAsked) {
  engine_ = parse_engine_facts("Segmentation fault");
  expect("problem engine: ridgeline-engine said something else than expected");
  EXPECT_EQ(parse_engine_facts(R"({"torch": "2.11", "nccl": true, "devices": []})").torch, "2.11");
  EXPECT_FALSE(parse_engine_facts(R"({"torch": 2, "nccl": true, "devices": []})").fault.empty());
}

}  // namespace
}  // namespace ridgeline::doctor
