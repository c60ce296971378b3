// RecordedRun: what a run of `ridgeline train` has recorded so far, as a projection needs it.
//
// Read from its folder: config.toml (the last start's) and metrics.jsonl. The number of devices is in neither; it
// follows from model FLOPs, time and rate of a step. Steps of an earlier layout, before a resume on other devices or
// with another batch, are left out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spec/train.h"

namespace ridgeline::project {

struct RecordedRun {
  std::string path;      // of metrics.jsonl
  spec::TrainSpec spec;  // with strategy.data derived
  int64_t devices = 0;
  int64_t finished_steps = 0;
  std::vector<double> step_seconds;
  // Means; nothing where none was recorded.
  std::optional<double> start_seconds;
  std::optional<double> evaluation_seconds;
  std::optional<double> save_seconds;
  double pause_seconds = 0;  // a step: reporting and the like, without evaluations and saves
};

// `path`: a run folder, or its metrics.jsonl. Throws InputError that says which file and line, and why.
RecordedRun read_recorded_run(const std::string& path);

// Throws InputError, naming two runs and what they differ in, where they are not the same work on the same devices.
void require_same_work(const std::vector<RecordedRun>& runs);

}  // namespace ridgeline::project
