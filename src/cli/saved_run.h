// A checkpoint together with the config that it was written under, for commands that use a trained model.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/file_system.h"
#include "spec/train.h"

namespace ridgeline::cli {

struct SavedRun {
  checkpoint::Path checkpoint;
  int64_t step = 0;
  // As saved, but laid out anew: `strategy` is the default one with the run's micro-batch, since the ranks that use a
  // model are not those that trained it.
  spec::TrainSpec spec;
};

// The newest complete checkpoint of the run folder `path`, or the checkpoint `path`. `sets` ("key=value") win over what
// was saved, but for the model's keys. InputError where there is no checkpoint, or one without a config.
SavedRun open_saved_run(const std::string& path, const std::vector<std::string>& sets);

}  // namespace ridgeline::cli
