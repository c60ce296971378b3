// A recorded table as the objective of a study: each row is a point, and its outcome what a trial would have brought.
//
// Columns that a Strategy knows go into it: tensor, pipeline, data, virtual_pipeline, micro_batch, recompute (none,
// selective or attn_only, full), zero_stage, sequence_parallel, global_batch, schedule. `outcome` (ok, oom, or a name
// of search/tune/trial.h) and `step_seconds` are read, `memory_gib` (what it needs, also of a row that fails) where it
// is there. Any further column in which rows differ is a dimension of its own. Empty cells are refused where a value is
// needed.
#pragma once

#include <string>
#include <vector>

#include "search/tune/points.h"
#include "search/tune/trial.h"
#include "simulate/csv.h"
#include "spec/model.h"

namespace ridgeline::search {

struct ReplayRow {
  Outcome outcome = Outcome::ok;
  double step_seconds = 0;
  double peak_bytes = 0;  // 0: not recorded
};

struct Replay {
  PointSet points;
  std::vector<ReplayRow> rows;          // one a point
  bool selective_is_attention = false;  // "attn_only": a recipe whose selective recomputes scores and softmax

  // `limit_bytes`: of a device, to say by how much a failing row falls short.
  Trial trial(size_t point, double limit_bytes) const;
};

// Throws InputError (file, line, column) for whatever cannot be a strategy of the model on `devices` devices.
Replay read_replay(const std::string& path, const spec::ModelSpec& model, int64_t devices, int64_t global_batch);
Replay replay_of(const simulate::Table& table, const spec::ModelSpec& model, int64_t devices, int64_t global_batch);

}  // namespace ridgeline::search
