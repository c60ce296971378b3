#include "core/cpu_target.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "core/error.h"

namespace ridgeline {
namespace {

CpuTarget supported_target() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? CpuTarget::avx512 : avx2 ? CpuTarget::avx2 : CpuTarget::baseline;
#else
  return CpuTarget::baseline;
#endif
}

CpuTarget allowed_target() {
  const char* wanted = std::getenv("RIDGELINE_CPU");
  if (wanted == nullptr || *wanted == '\0') return CpuTarget::avx512;
  for (CpuTarget target : {CpuTarget::baseline, CpuTarget::avx2, CpuTarget::avx512}) {
    if (to_string(target) == wanted) return target;
  }
  throw InputError("environment: RIDGELINE_CPU = '{}': expected baseline, avx2 or avx512; unset it to use the best",
                   wanted);
}

std::atomic<CpuTarget>& current_target() {
  static std::atomic<CpuTarget> target{std::min(supported_target(), allowed_target())};
  return target;
}

}  // namespace

CpuTarget cpu_target() { return current_target().load(std::memory_order_relaxed); }

std::string_view to_string(CpuTarget target) {
  switch (target) {
    case CpuTarget::baseline:
      return "baseline";
    case CpuTarget::avx2:
      return "avx2";
    case CpuTarget::avx512:
      return "avx512";
  }
  return "unknown";
}

void limit_cpu_target(CpuTarget target) { current_target() = std::min(supported_target(), target); }

}  // namespace ridgeline
