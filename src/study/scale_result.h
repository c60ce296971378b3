// ScaleResult: what the points of a scaling study say together.
//
// Let c(n) be the device-seconds of a sample on n devices, n T(n) / B(n). The efficiency of a point is c(n0) / c(n), n0
// being the smallest number of devices that ran. So it is
//   weak    tokens/s of a device over those of the smallest point,
//   strong  T(n0) n0 / (T(n) n),
// and the loss 1 - c(n0) / c(n) is the sum over the parts k of a predicted step of (c_k(n) - c_k(n0)) / c(n): where it
// comes from.
//
// Fits, to T(n) by least squares of relative residuals, with 95 % intervals of Student's t where there are degrees of
// freedom:
//   strong  T(n) = T(n0) (s + (1 - s) n0 / n)       s: the serial share (Amdahl), beyond n0 devices
//   weak    T(n) = T(n0) (1 + g log2(n / n0))       g: the share that a doubling adds
// For simulated points the interval says how well the law describes them, not how noise scatters them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/critical_batch.h"
#include "study/problem.h"
#include "study/scale_file.h"

namespace ridgeline::study {

struct Spread {
  double middle = 0, low = 0, high = 0;
};

struct LossPart {
  std::string name;  // as in `time` of `simulate --json`
  double share = 0;  // of the point's device-seconds
};

struct ScalePoint {
  size_t point = 0;                             // of the problem
  std::optional<search::Outcome> outcome = {};  // none: not ended
  std::string message = {};
  std::vector<double> medians = {};  // seconds of a step, one a run
  Spread seconds = {};               // median, least and most of them; zeros: it has not run
  double tokens_per_second = 0;
  double tflops_per_device = 0;           // model FLOPs
  double hardware_tflops_per_device = 0;  // and recomputation
  std::optional<Spread> efficiency = {};
  double ideal_speedup = 0, speedup = 0;  // over the smallest point, of samples a second
  std::optional<simulate::Prediction> predicted = {};
  std::optional<double> predicted_efficiency = {};
  std::vector<LossPart> loss = {};  // of predicted_efficiency
  double batch_tokens = 0;
};

struct ScaleFit {
  size_t points = 0;
  Spread share = {};  // serial share, or share of a doubling; low == high: no interval
  bool has_interval = false;
  double seconds = 0;   // fitted, on the smallest number
  double residual = 0;  // root mean square, relative
};

struct ScaleResult {
  ScaleKind kind = ScaleKind::weak;
  std::vector<ScalePoint> points;  // by devices
  std::optional<ScaleFit> fit;     // of two points or more
  CriticalBatch critical;
};

ScaleResult scale_result(const ScaleFile& file, const Problem& problem, const std::vector<TrialRecord>& trials,
                         const std::vector<RunRecord>& runs);

// Of seconds by devices.
ScaleFit fit_scaling(ScaleKind kind, const std::vector<std::pair<double, double>>& seconds);

}  // namespace ridgeline::study
