#include "platform/peak.h"

#include "core/error.h"
#include "spec/device_peaks.h"

namespace ridgeline::platform {
namespace {

double tflops(const spec::DevicePeaks& peaks, spec::Precision precision) {
  switch (precision) {
    case spec::Precision::fp32:
      return peaks.fp32;
    case spec::Precision::bf16:
      return peaks.bf16;
    case spec::Precision::fp16:
      return peaks.fp16;
  }
  throw InternalError("Precision {}", static_cast<int>(precision));
}

}  // namespace

std::optional<double> peak_flops(const std::string& device_name, spec::Precision precision) {
  const std::optional<spec::DevicePeaks> peaks = spec::device_peaks(device_name);
  if (!peaks || tflops(*peaks, precision) <= 0) return std::nullopt;
  return tflops(*peaks, precision) * 1e12;
}

}  // namespace ridgeline::platform
