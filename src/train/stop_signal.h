// SIGINT, SIGTERM and SIGUSR1 (what Slurm sends before a time limit) ask a run to save and stop after the step under way.
// A second SIGINT ends the process at once.
#pragma once

namespace ridgeline::train {

class StopSignal {
 public:
  StopSignal();   // installs handlers
  ~StopSignal();  // restores the defaults
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  static bool requested();
};

}  // namespace ridgeline::train
