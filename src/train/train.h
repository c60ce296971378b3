// `ridgeline train` as one rank runs it.
#pragma once

#include <string>

#include "launch/environment.h"
#include "spec/train.h"

namespace ridgeline::train {

// Exit codes of train_command beside those of errors (core/error.h).
constexpr int kFinished = 0;
constexpr int kInterrupted = 3;  // a signal asked to stop; the run was saved

// Trains as `spec` says on the ranks of `environment`, resuming from the run folder's newest complete checkpoint.
// An error of this rank is told to all others before it is thrown on. `machine`: one that predicts the step, which the run
// is compared with (spec/machine.h); empty: none.
int train_command(const spec::TrainSpec& spec, const launch::RankEnvironment& environment, const std::string& machine);

}  // namespace ridgeline::train
