// What a strategy is predicted to take: time by part, rates, memory of each stage, and whether it fits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/strategy.h"

namespace ridgeline::simulate {

// Seconds of the step on its slowest stage in which nothing but this went on; they add up to the step.
struct StepTime {
  double compute = 0;
  double tensor_comm = 0;
  double pipeline_comm = 0;
  double data_comm = 0;
  double context_comm = 0;
  double expert_comm = 0;
  double bubble = 0;
  double optimizer = 0;
  double total() const {
    return compute + tensor_comm + pipeline_comm + data_comm + context_comm + expert_comm + bubble + optimizer;
  }
};

// Bytes of a device of one stage, at its peak.
struct StageMemory {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;
  double buffers = 0;  // transients, message and reduction buffers, communicators, context
  double low = 0;      // with the allocator's slack as it is likely
  double high = 0;     // and at worst
  double total() const { return weights + gradients + optimizer + activations + buffers; }
};

enum class Fit { fits, at_risk, does_not_fit };  // by `high`, by `low`
std::string to_string(Fit fit);

struct Prediction {
  spec::Strategy strategy;  // with `data` derived
  StepTime time;
  double step_seconds = 0;
  double tokens_per_second = 0;
  double tflops_per_device = 0;           // model FLOPs
  double hardware_tflops_per_device = 0;  // and recomputation
  double mfu = 0;
  double hfu = 0;
  int64_t slowest_stage = 0;
  int64_t fullest_stage = 0;
  StageMemory memory;  // of the fullest stage
  Fit fit = Fit::fits;
};

}  // namespace ridgeline::simulate
