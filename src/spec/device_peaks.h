// Peak rates of known devices, from their makers' data sheets: dense (no structured sparsity), matrix units, at boost
// clock. The one owner of these figures: `train` looks them up by the device's name, and a test holds the machine files
// against them. A device is known by its exact name, as the drivers spell it; none is guessed from one that looks alike.
#pragma once

#include <optional>
#include <string>

namespace ridgeline::spec {

struct DevicePeaks {  // TFLOP/s of one device as software sees it (a MI250X is two, a Max 1550 is two)
  double fp16 = 0;
  double bf16 = 0;  // 0 where the matrix units do not know bf16
  double fp32 = 0;  // IEEE single precision without TF32
};

std::optional<DevicePeaks> device_peaks(const std::string& device_name);

}  // namespace ridgeline::spec
