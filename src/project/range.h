// Range: a quantity that is not known exactly, as a likely value with a low and a high one; nine of ten lie between.
#pragma once

namespace ridgeline::project {

inline constexpr double kNormal90 = 1.6449;  // standard deviations from the middle to either end of a range

struct Range {
  double low = 0;
  double middle = 0;
  double high = 0;

  static Range exactly(double value) { return {value, value, value}; }
  Range operator*(double factor) const { return {low * factor, middle * factor, high * factor}; }
  Range operator+(const Range& other) const { return {low + other.low, middle + other.middle, high + other.high}; }
};

}  // namespace ridgeline::project
