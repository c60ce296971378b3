// The file of `ridgeline scale`: a model, a strategy, and the numbers of devices that it is tried on.
//
//   ScaleFile file = load_scale_file("scale.toml", {"scale.kind=strong"}, load_model);
//   std::vector<search::Point> points = scale_points(file, file.scale.devices);
//
// A point keeps the strategy's tensor and pipeline sizes; the data axis takes the rest of the devices. With
// scale.replan each point has the fastest strategy that the simulator finds for it instead. Strong scaling keeps the
// samples of a step, weak scaling the samples of a step for each device. docs/scaling.md explains the keys; they are
// listed by scale_keys().
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "spec/train.h"
#include "study/study_file.h"

namespace ridgeline::study {

enum class ScaleKind { none, weak, strong };
std::string to_string(ScaleKind kind);

struct ScaleSpec {  // [scale]
  ScaleKind kind = ScaleKind::none;
  std::vector<int64_t> devices;
  int64_t global_batch = 0;   // strong: of every point; weak, without replica_batch: of the smallest
  int64_t replica_batch = 0;  // weak: of each replica
  int64_t repeats = 3;        // measured runs of each point
  bool replan = false;
  double critical_batch_tokens = 0;  // where it was measured; 0: by rule
};

struct ScaleFile {
  StudyFile study;        // model, machine, store, objective, measurement and executor; its space is unused
  spec::TrainSpec train;  // of the model, with the file's strategy
  ScaleSpec scale;

  bool is_weak() const { return scale.kind == ScaleKind::weak; }
  int64_t least_devices() const { return scale.devices.front(); }  // ascending
};

// `load_model`: of a preset's name or a config's path. Throws InputError for everything that is wrong with the input.
// With weak and strong scaling, and with and without replan, the store's default name differs.
ScaleFile load_scale_file(const std::string& path, const std::vector<std::string>& sets,
                          const std::function<spec::TrainSpec(const std::string&)>& load_model);

// One for each number of devices. Throws InputError where a strategy is not legal there, or, with scale.replan, where
// none fits.
std::vector<search::Point> scale_points(const ScaleFile& file, const std::vector<int64_t>& devices);

// All keys, as Markdown tables.
std::string scale_keys();

}  // namespace ridgeline::study
