// Calibration: fits the constants of a machine's software stack, and rates of single shapes, to recorded runs.
//
// With r = log(measured / predicted) of the runs and u the logarithms of what is fitted, the most probable u under
//   r(u) ~ N(0, noise^2),   u ~ N(what the machine file says, prior)
// is found by Gauss-Newton steps; runs far off weigh less (Huber). Constants have a prior width each. Factors of shapes
// share one width, and are as correlated as the shapes are alike (simulate/shape_factor.h), so that one odd run cannot
// bend a shape far, and shapes near each other move together. Nothing is fitted to a model, a strategy or a row.
//
// What the runs do not tell stays as it was: `determined` is 1 - posterior variance / prior variance of a constant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/measured.h"
#include "spec/machine.h"

namespace ridgeline::simulate {

struct CalibrationOptions {
  bool fits_shapes = true;
  double noise = 0.03;        // of a run's step time, standard deviation of the logarithm
  double shape_width = 0.15;  // prior of a shape's factor
  int steps = 30;             // at most
};

struct FittedConstant {
  std::string name;  // key of [stack]
  double before = 0;
  double after = 0;
  double low = 0, high = 0;  // one standard deviation of the posterior either way
  double determined = 0;
};

struct Calibration {
  spec::Machine machine;  // with the fitted constants and shapes
  std::vector<FittedConstant> constants;
  int64_t runs = 0;
};

// `runs` are predicted on `machine` whatever machine they name; those that cannot be predicted are left out. Throws
// InputError where fewer than three or more than 4,000 are left.
Calibration calibrate(const std::vector<MeasuredRun>& runs, const spec::Machine& machine,
                      const CalibrationOptions& options = {});

// A machine file on top of `base`: fitted constants and shapes.
std::string machine_toml(const Calibration& calibration, const std::string& name, const std::string& base,
                         const std::string& stack_name);

}  // namespace ridgeline::simulate
