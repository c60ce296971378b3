// How far predictions are from recorded runs: error, order and regret, for each source and for all.
//
//   error         predicted / measured step time - 1; mean, mean of absolutes, 95th percentile of absolutes
//   kendall_tau   tau-b of the order within groups of equal model, batch and devices that hold at least four rows, mean
//   regret        how much longer than the group's fastest run the one takes that was predicted fastest, mean
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulate/measured.h"

namespace ridgeline::simulate {

struct ValidatedRun {
  MeasuredRun run;
  std::optional<Prediction> prediction;  // none where run.why_not says why
  double predicted_peak = 0;             // bytes, to hold against run.peak_bytes
  double error() const { return prediction->step_seconds / run.step_seconds - 1; }
  double memory_error() const { return predicted_peak / run.peak_bytes - 1; }
};

struct Accuracy {
  std::string source;
  int64_t rows = 0;
  int64_t predicted = 0;
  double mean_error = 0;
  double mean_absolute_error = 0;
  double p95_absolute_error = 0;
  std::optional<double> kendall_tau;  // none without a group of four
  std::optional<double> regret;
  std::optional<double> memory_mean_error;  // of the peaks of memory, where rows have them
  std::optional<double> memory_mean_absolute_error;
};

// The account of `rows` of a source of which `errors` were predicted, without order and regret.
Accuracy accuracy_of(const std::string& source, int64_t rows, const std::vector<double>& errors);

// `machine`: name or path for all rows; empty: the one that each row names.
std::vector<ValidatedRun> validate_runs(const std::vector<MeasuredRun>& runs, const std::string& machine);
// On one machine, whatever the rows name.
std::vector<ValidatedRun> validate_runs(const std::vector<MeasuredRun>& runs, const spec::Machine& machine);

// One for each source in order of appearance, the last one for "all".
std::vector<Accuracy> accuracies(const std::vector<ValidatedRun>& runs);

}  // namespace ridgeline::simulate
