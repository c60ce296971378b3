// Heartbeat: what a rank last said of itself, as it stands in the store, and whether its process still runs where that
// can be seen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ridgeline::mesh {

// Names a process for ever: another process that gets the same number later has another start time.
struct ProcessName {
  std::string place;  // machine boot and process namespace: processes of one place see each other
  int64_t process = 0;
  uint64_t start_time = 0;
  std::string host = {};  // for people
};
ProcessName this_process();
// Whether it surely has ended: false where it runs, and where it cannot be seen from here.
bool has_ended(const ProcessName& name);

struct Heartbeat {
  uint64_t count = 0;     // of this rank's heartbeats
  int64_t step = -1;      // -1: before the first
  std::string phase;      // what it does, in words
  bool finished = false;  // it is done and will say no more
  ProcessName process;

  std::string to_text() const;
  // None where the text is no heartbeat.
  static std::optional<Heartbeat> from_text(const std::string& text);
  // "at step 12, in backward"
  std::string where() const;
};

}  // namespace ridgeline::mesh
