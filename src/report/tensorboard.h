// EventFile: scalars that TensorBoard draws.
//
//   EventFile events("runs/a", resumed_step);   // runs/a/events.out.tfevents.TIME.HOST.PID
//   events.scalars(step, {{"loss", 3.1}, {"throughput/tokens_per_second", 12e3}});
//
// Each call is one write, so a reader of the growing file sees whole records. On a resumed run TensorBoard is told to
// drop what an earlier file of the folder says of steps after resumed_step.
//
// Format, as TensorFlow documents it: records {uint64 length, masked CRC-32C of those 8 bytes, bytes, masked CRC-32C of
// the bytes}, little-endian (core/lib/io/record_writer.h); the bytes are an `Event` message (core/util/event.proto:
// wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7) with a `Summary` (framework/summary.proto:
// value = 1 with tag = 1, simple_value = 2). Messages this small are encoded by hand.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "report/metrics.h"

namespace ridgeline::report {

struct Scalar {
  std::string_view tag;
  double value;
};

class EventFile {
 public:
  // Failure where the folder or the file cannot be made. resumed_step = 0: the run starts.
  EventFile(const std::string& folder, int64_t resumed_step);
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  ~EventFile();

  void scalars(int64_t step, std::span<const Scalar> values);
  void scalars(int64_t step, std::initializer_list<Scalar> values) { scalars(step, {values.begin(), values.size()}); }
  // All fields of a step under the tags that `report` uses: train/loss, train/grad_norm, train/lr, validation/loss,
  // speed/step_seconds, speed/tokens_per_second, speed/tflops_per_device, speed/mfu, memory/peak_gib ...
  void step_metrics(const StepMetrics& metrics);

  const std::string& path() const { return path_; }

 private:
  void write_record(const std::string& event);

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace ridgeline::report
