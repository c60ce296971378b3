#include "spec/device_peaks.h"

#include <array>
#include <string_view>

namespace ridgeline::spec {
namespace {

struct PeakRow {
  std::string_view name;
  DevicePeaks tflops;
};

// Names as the drivers spell them (cuDeviceGetName, hipDeviceGetName, zeDeviceGetProperties).
constexpr std::array rows = {
    // NVIDIA Tesla V100 data sheet (2020): 125 (SXM2), 112 (PCIe) fp16 tensor; 15.7, 14 fp32.
    PeakRow{"Tesla V100-SXM2-16GB", {125, 0, 15.7}},
    PeakRow{"Tesla V100-SXM2-32GB", {125, 0, 15.7}},
    PeakRow{"Tesla V100-PCIE-16GB", {112, 0, 14}},
    PeakRow{"Tesla V100-PCIE-32GB", {112, 0, 14}},
    // NVIDIA A100 data sheet (2021): 312 bf16/fp16 dense, 19.5 fp32, all forms.
    PeakRow{"NVIDIA A100-SXM4-40GB", {312, 312, 19.5}},
    PeakRow{"NVIDIA A100-SXM4-80GB", {312, 312, 19.5}},
    PeakRow{"NVIDIA A100-PCIE-40GB", {312, 312, 19.5}},
    PeakRow{"NVIDIA A100 80GB PCIe", {312, 312, 19.5}},
    // NVIDIA H100 data sheet (2023), with sparsity halved: SXM 1,979 / 2, NVL 1,671 / 2, PCIe 1,513 / 2 (2022 edition);
    // fp32 67, 60, 51.
    PeakRow{"NVIDIA H100 80GB HBM3", {989.5, 989.5, 67}},
    PeakRow{"NVIDIA H100 NVL", {835.5, 835.5, 60}},
    PeakRow{"NVIDIA H100 PCIe", {756.5, 756.5, 51}},
    // NVIDIA H200 data sheet (2024): SXM 1,979 / 2, NVL 1,671 / 2; fp32 67, 60.
    PeakRow{"NVIDIA H200", {989.5, 989.5, 67}},
    PeakRow{"NVIDIA H200 NVL", {835.5, 835.5, 60}},
    // NVIDIA GH200 data sheet (2023): 990 dense, 67 fp32.
    PeakRow{"NVIDIA GH200 120GB", {989.5, 989.5, 67}},
    PeakRow{"NVIDIA GH200 480GB", {989.5, 989.5, 67}},
    // NVIDIA HGX platform page (2025): 8 B200 have 36 PFLOP/s with sparsity and 600 TFLOP/s fp32.
    PeakRow{"NVIDIA B200", {2250, 2250, 75}},
    // NVIDIA GB200 NVL72 page (2025): 72 GPUs have 360 PFLOP/s with sparsity and 5,760 TFLOP/s fp32.
    PeakRow{"NVIDIA GB200", {2500, 2500, 80}},
    // AMD CDNA 2 data sheet: MI250X 383 bf16/fp16 and 95.7 fp32 matrix for the module of two; one device is one die.
    PeakRow{"AMD Instinct MI250X", {191.5, 191.5, 47.85}},
    PeakRow{"AMD Instinct MI210", {181, 181, 45.3}},
    // AMD Instinct MI300 series data sheets: MI300X and MI325X 1,307.4 and 163.4; MI300A 980.6 and 122.6.
    PeakRow{"AMD Instinct MI300X", {1307.4, 1307.4, 163.4}},
    PeakRow{"AMD Instinct MI325X", {1307.4, 1307.4, 163.4}},
    PeakRow{"AMD Instinct MI300A", {980.6, 980.6, 122.6}},
    // Intel Max series brief (2023): 832 bf16/fp16 XMX and 52 fp32 vector for the card of two; one device is one tile.
    // This is the nominal figure: studies on Aurora measured 256 and used peaks from 298 to 570.
    PeakRow{"Intel(R) Data Center GPU Max 1550 (tile)", {416, 416, 26}},
};

}  // namespace

std::optional<DevicePeaks> device_peaks(const std::string& device_name) {
  for (const PeakRow& row : rows) {
    if (row.name == device_name) return row.tflops;
  }
  return std::nullopt;
}

}  // namespace ridgeline::spec
