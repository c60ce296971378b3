#include "study/energy_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "study/scratch.h"

namespace ridgeline::study {
namespace {

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(EnergyMeter, AddsPackagesAndTheirTurnovers) {
  const Scratch scratch;
  const std::string folder = scratch.path("class/powercap/");
  for (const char* package : {"intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"}) {
    write(folder + package + "/energy_uj", "9000000\n");
    write(folder + package + "/max_energy_range_uj", "10000000\n");
  }
  EnergyMeter meter({}, scratch.path(""));
  meter.mark(100);
  write(folder + "intel-rapl:0/energy_uj", "500000\n");  // 1.5 J, past the end of its range
  write(folder + "intel-rapl:1/energy_uj", "9700000\n");
  write(folder + "intel-rapl:0:0/energy_uj", "9999999\n");  // a part of the first package
  meter.mark(102);
  EXPECT_NEAR(meter.mean_watts(), (1.5 + 0.7) / 2, 1e-9);
}

TEST(EnergyMeter, TakesAWholeNodesCounterFirst) {
  const Scratch scratch;
  write(scratch.path("cray/pm_counters/energy"), "1000 J 1700000000 us\n");
  EnergyMeter meter({}, scratch.path(""));
  meter.mark(0);
  EXPECT_EQ(meter.mean_watts(), 0);
  write(scratch.path("cray/pm_counters/energy"), "3000 J 1700000001 us\n");
  meter.mark(4);
  EXPECT_NEAR(meter.mean_watts(), 500, 1e-9);
}

TEST(EnergyMeter, SaysWhatItLookedFor) {
  const Scratch scratch;
  try {
    EnergyMeter({}, scratch.path(""));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("class/powercap/intel-rapl:*/energy_uj"));
  }
  write(scratch.path("words"), "none\n");
  EXPECT_THROW(EnergyMeter({scratch.path("words")}), InputError);
}

}  // namespace
}  // namespace ridgeline::study
