// Which instruction set the vector loops of this process use.
//
// A loop is compiled once for each CpuTarget (core/for_each_target.h) and chosen here when the program runs, so that
// one binary is fast on a new machine and correct on an old one. Elementwise results agree between targets to fused
// multiply-add rounding; sums agree to rounding, since their order follows the number of lanes.
//
// The environment variable RIDGELINE_CPU (baseline, avx2, avx512) lowers the choice, to find out whether a fault or a
// difference comes from a vector loop.
#pragma once

#include <string_view>

namespace ridgeline {

enum class CpuTarget { baseline, avx2, avx512 };

// The best target that this CPU offers and RIDGELINE_CPU allows. Throws InputError if RIDGELINE_CPU names no target.
CpuTarget cpu_target();

std::string_view to_string(CpuTarget target);

// For tests: use at most `target` from here on. Not to be called while loops run.
void limit_cpu_target(CpuTarget target);

}  // namespace ridgeline

// The version of a function, compiled through core/for_each_target.h, that suits this CPU.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define RIDGELINE_PICK(...)                                                                       \
  (::ridgeline::cpu_target() == ::ridgeline::CpuTarget::avx512 ? ::ridgeline::avx512::__VA_ARGS__ \
   : ::ridgeline::cpu_target() == ::ridgeline::CpuTarget::avx2 ? ::ridgeline::avx2::__VA_ARGS__   \
                                                               : ::ridgeline::baseline::__VA_ARGS__)
#else
#define RIDGELINE_PICK(...) (::ridgeline::baseline::__VA_ARGS__)
#endif
