// Watchdog: when one rank fails, all ranks end within about a second, with that rank's words and exit code, even those
// whose main thread stands in a collective; and when a rank falls silent, the others say which and where it was.
//
//   Watchdog watchdog(store, rank, world);
//   try {
//     ... watchdog.progress(step, "forward"); ...
//     watchdog.finish();
//   } catch (const std::exception& error) {
//     watchdog.fail(error);
//   }
//
// A thread with a connection of its own to the store writes this rank's heartbeat, looks for the note of a rank that
// failed, and watches the next rank that has not finished (so that each is watched by one). What ends a job:
//   * fail() on a rank: its note, "ridgeline: rank 3 failed: ...";
//   * a process that is gone without finish(), seen at once by a rank on the same machine;
//   * no heartbeat for `silence` seconds;
//   * the loss of the store, when rank 0 holds it: rank 0 is gone.
// A note ends a process by _exit, with the exit code of the rank that failed; on each machine the first rank prints it,
// the others end without a word. A failure of communication is mostly the consequence of another rank's death, so
// fail() then first waits `grace` seconds for the cause.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "mesh/store.h"

namespace ridgeline::mesh {

struct WatchdogOptions {
  double poll = 0.3;      // seconds between looks for a note
  double beat = 1.0;      // seconds between heartbeats; at least silence / 6 where the store grows with each
  double silence = 60.0;  // seconds without a heartbeat that count as death
  double grace = 3.0;     // seconds that a failure of communication waits for its cause
  double linger = 3.0;    // seconds that the holder of the store stays at most, for others to read the note
};

class Watchdog {
 public:
  // With one rank, or without a store, there is no thread, and fail() just prints and ends the process.
  Watchdog(const std::shared_ptr<Store>& store, int64_t rank, int64_t world, const WatchdogOptions& options = {});
  // Without finish() the other ranks will take this one for dead.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Cheap: what the next heartbeat will say.
  void progress(int64_t step, const std::string& phase);

  // This rank has done its work and may leave. Where it holds the store it waits until all others have too.
  void finish();

  // Ends the whole job for `error`. Errors of ours keep their exit code, all others have 1.
  [[noreturn]] void fail(const std::exception& error);

 private:
  class Thread;
  int64_t rank_;
  int64_t world_;
  std::unique_ptr<Thread> thread_;  // none where there is nobody to watch
};

}  // namespace ridgeline::mesh
