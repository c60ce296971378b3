// SplitMix64's mixing function (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
// What is drawn with it is part of the format of runs: it must not change.
#pragma once

#include <cstdint>

namespace ridgeline {

inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio, odd

constexpr uint64_t split_mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace ridgeline
