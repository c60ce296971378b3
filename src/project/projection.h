// What a whole training takes: days, device-hours, node-hours, energy and money, each with a low, a likely and a high
// value, and the parts that the time consists of.
//
//   time    steps (with the batch's ramp), pauses between steps, evaluations; failures, checkpoints, restarts and jobs
//           of limited length are played (project/failures.h). The middle is the mean of all plays, which the parts add
//           up to; low and high are their 5 % and 95 % points.
//   energy  devices draw power.busy_w while they step (work that failures undo included) and power.idle_w in starts,
//           saves and restarts; power.node_other_w is drawn all the time; the sum times power.pue.
//   tokens  where none are given: 20 a parameter, near what is compute-optimal (Hoffmann et al. 2022, arXiv 2203.15556,
//           table 3: 1.5 T tokens for 67 B parameters).
//
// A checkpoint holds a master and two moments in fp32 of each parameter: 12 bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "project/failures.h"
#include "project/step_model.h"
#include "spec/machine.h"

namespace ridgeline::project {

inline constexpr double kTokensPerParameter = 20;
inline constexpr double kCheckpointBytesPerParameter = 12;
inline constexpr double kAssumedNodeMtbfHours =
    5000;  // where a machine has no rate: between RSC-1 (3,692 h) and Llama 3

// The batch grows from `start` to the strategy's in equal steps of `increment`, over `samples` samples.
struct BatchRamp {
  int64_t start = 0;
  int64_t increment = 0;
  double samples = 0;
};

struct Conditions {
  double tokens = 0;
  int64_t devices = 0;
  int64_t devices_per_node = 1;
  int64_t spare_nodes = 0;  // allocated beside, so that a failure does not end the job
  std::optional<BatchRamp> ramp;
  spec::PowerFacts power;
  spec::OperationFacts operation;
  bool fails = true;                       // false: no failures at all
  std::optional<double> save_seconds;      // else the checkpoint's bytes over the storage's bandwidth
  std::optional<double> interval_seconds;  // of work between checkpoints; else the best one
  std::optional<double> job_hours;         // the longest job; none: one that lasts
  double wait_hours = 0;                   // in the queue, mean, before each job
  std::optional<double> price_node_hour;
  // From recorded runs, at their devices.
  std::optional<double> start_seconds;
  std::optional<double> evaluation_seconds;
  double pause_seconds = 0;
  int64_t plays = 2000;
  uint64_t seed = 1;
};

struct Projection {
  double tokens = 0;
  int64_t devices = 0;
  int64_t nodes = 0;  // spare ones included
  double steps = 0;
  Range step_seconds;  // at the full batch
  Range days, node_hours, device_hours;
  std::optional<Range> energy_mwh, device_energy_mwh, cost;
  Spent spent;                    // mean, seconds
  double evaluation_seconds = 0;  // of spent.work
  double pause_seconds = 0;
  double ramp_seconds = 0;  // what the ramp adds to it
  double interval_seconds = 0;
  double interval_steps = 0;
  double save_seconds = 0;
  double checkpoint_bytes = 0;
  std::optional<double> mtbf_seconds;    // of all nodes
  std::vector<std::string> assumptions;  // a line for each figure that nobody gave or measured
};

// Of one checkpoint, by the storage's bandwidth.
double save_seconds(const spec::ModelSpec& model, const spec::OperationFacts& operation, int64_t nodes);

double compute_optimal_tokens(const spec::ModelSpec& model);

// Throws InputError where the conditions cannot be met (a job too short to start in, a ramp that does not divide ...).
Projection project(StepModel& steps, const Conditions& conditions);

}  // namespace ridgeline::project
