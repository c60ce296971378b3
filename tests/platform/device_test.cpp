#include "platform/device.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/error.h"
#include "platform/timer.h"

namespace ridgeline::platform {
namespace {

TEST(Device, SelectsTheCpuByName) {
  const Device device = Device::select("cpu", 7);
  EXPECT_TRUE(device.is_cpu());
  EXPECT_EQ(device.torch(), at::Device(at::kCPU));
  EXPECT_FALSE(device.name().empty());
  EXPECT_GT(device.total_bytes(), int64_t{1} << 20);
  device.make_current();
  device.synchronize();
}

TEST(Device, AutoFindsSomethingThatComputes) {
  const Device device = Device::select("auto");
  device.make_current();
  EXPECT_EQ(at::ones({4}, at::TensorOptions().device(device.torch())).sum().item<double>(), 4.0);
}

TEST(Device, RefusesUnknownNamesAndSaysWhichThereAre) {
  try {
    Device::select("gpu");
    FAIL() << "expected an InputError";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("\"gpu\""), testing::HasSubstr("auto, cpu, cuda")));
    EXPECT_EQ(error.exit_code(), 2);
  }
}

TEST(Device, RefusesAnAcceleratorThatIsNotThere) {
  if (Device::select("auto").kind() == DeviceKind::xpu) GTEST_SKIP() << "this machine has an XPU";
  EXPECT_THROW(Device::select("xpu"), Failure);
}

TEST(Device, CountsCpuBytesExactly) {
  const Device device = Device::select("cpu");
  const int64_t before = device.allocated_bytes();
  device.reset_peak();
  {
    at::Tensor first = at::empty({1000}, at::kFloat);
    EXPECT_EQ(device.allocated_bytes() - before, 4000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data_ptr()) % 64, 0u);
    {
      at::Tensor second = at::empty({501}, at::kBFloat16);
      EXPECT_EQ(device.allocated_bytes() - before, 5002);
    }
    EXPECT_EQ(device.allocated_bytes() - before, 4000);
    EXPECT_EQ(device.peak_bytes() - before, 5002);
    device.reset_peak();
    EXPECT_EQ(device.peak_bytes() - before, 4000);
  }
  EXPECT_EQ(device.allocated_bytes(), before);
}

TEST(Device, CountsResizedEmptyAndCopiedTensors) {
  const Device device = Device::select("cpu");
  const int64_t before = device.allocated_bytes();
  {
    at::Tensor tensor = at::arange(10, at::kLong);
    tensor.resize_({100});
    EXPECT_EQ(device.allocated_bytes() - before, 800);
    EXPECT_EQ(tensor[9].item<int64_t>(), 9);
    const at::Tensor none = at::empty({0}, at::kFloat);
    EXPECT_EQ(device.allocated_bytes() - before, 800);
    const at::Tensor copy = tensor.clone();
    EXPECT_EQ(device.allocated_bytes() - before, 1600);
    EXPECT_TRUE(copy.slice(0, 0, 10).equal(at::arange(10, at::kLong)));
  }
  EXPECT_EQ(device.allocated_bytes(), before);
}

TEST(Device, CountsAcrossThreads) {
  const Device device = Device::select("cpu");
  const int64_t before = device.allocated_bytes();
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([] {
      for (int repeat = 0; repeat < 200; ++repeat) at::empty({repeat + 1}, at::kByte).fill_(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device.allocated_bytes(), before);
}

TEST(Threads, AreSetAndRefusedBelowOne) {
  set_threads(1);
  EXPECT_EQ(threads(), 1);
  EXPECT_THROW(set_threads(0), InputError);
}

TEST(DeviceTimer, TimesWhatLiesBetween) {
  DeviceTimer timer(Device::select("cpu"));
  timer.start();
  timer.stop();
  const double nothing = timer.seconds();
  EXPECT_GE(nothing, 0.0);
  timer.start();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  timer.stop();
  EXPECT_GE(timer.seconds(), 0.02);
}

}  // namespace
}  // namespace ridgeline::platform
