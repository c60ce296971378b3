// SIGINT, SIGTERM and SIGUSR1 (what Slurm sends before a time limit) ask a run to save and stop after the step under
// way; before the first step, while ranks still meet and load, they end the process with exit code 3 at once, as nothing
// would be lost. A second SIGINT ends the process at once.
#pragma once

namespace ridgeline::train {

class StopSignal {
 public:
  // Installs handlers. One rank, which `speaks`, says why it ends.
  explicit StopSignal(bool speaks);
  ~StopSignal();  // restores the defaults
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  // From now on a signal is only noted, for requested().
  static void training_begins();
  static bool requested();
};

}  // namespace ridgeline::train
