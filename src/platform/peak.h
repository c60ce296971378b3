// Peak FLOP/s of the device that torch runs on (spec/device_peaks.h). For a device that is not known by its exact name,
// and for every CPU, there is no figure and so no MFU.
#pragma once

#include <optional>
#include <string>

#include "spec/train.h"

namespace ridgeline::platform {

// FLOP/s of one device as torch shows it (a MI250X is two, a Max 1550 is two). fp32 is IEEE single precision without
// TF32, which torch does not use unless told to.
std::optional<double> peak_flops(const std::string& device_name, spec::Precision precision);

}  // namespace ridgeline::platform
