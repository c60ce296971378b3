// Compiles the file RIDGELINE_TARGET_FILE once for each CpuTarget, in the namespace ridgeline::<target>:
//
//   #define RIDGELINE_TARGET_FILE "nn/kernels/gelu_loops.inl"
//   #include "core/for_each_target.h"
//   ...
//   const auto loop = RIDGELINE_PICK(gelu_loop<BFloat16>);   // from core/cpu_target.h
//
// Include all other headers first: what is included under a target's options must be these loops alone, or an inline
// function of a library, compiled for AVX-512, could be the one copy that the linker keeps. For the same reason the
// files put everything in an unnamed namespace. Deliberately without an include guard.
#ifndef RIDGELINE_TARGET_FILE
#error "define RIDGELINE_TARGET_FILE before including core/for_each_target.h"
#endif

#include <cstdint>

#include "core/cpu_target.h"
#include "core/storage_format.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"            // vectors never cross a function that is not inlined
#pragma GCC diagnostic ignored "-Wunused-function"  // no file uses all of core/lanes.inl

#define RIDGELINE_TARGET baseline
#define RIDGELINE_LANES 4
#include "core/lanes.inl"
#include RIDGELINE_TARGET_FILE
#undef RIDGELINE_TARGET
#undef RIDGELINE_LANES

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#define RIDGELINE_TARGET avx2
#define RIDGELINE_LANES 8
#include "core/lanes.inl"
#include RIDGELINE_TARGET_FILE
#undef RIDGELINE_TARGET
#undef RIDGELINE_LANES
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#define RIDGELINE_TARGET avx512
#define RIDGELINE_LANES 16
#include "core/lanes.inl"
#include RIDGELINE_TARGET_FILE
#undef RIDGELINE_TARGET
#undef RIDGELINE_LANES
#pragma GCC pop_options

#endif

#pragma GCC diagnostic pop
#undef RIDGELINE_TARGET_FILE
