// StepMetrics and metrics.jsonl: what a run measured, a JSON line a step.
//
//   MetricsFile file("runs/a/metrics.jsonl", resumed_step);   // lines of later steps are cut off
//   file.append(metrics);                                     // one write: a reader never sees half a line
//   auto all = read_metrics("runs/a/metrics.jsonl");
//   MetricsReader reader("runs/a/metrics.jsonl");              // a run of any length, a step at a time
//   while (const auto step = reader.next()) ...;
//
// Keys of a line are the names of the fields below; optional ones are left out where there is no value, and a number
// that is not finite (a loss that diverged) is null. Keys that are not known are ignored on reading.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::report {

struct StepMetrics {
  int64_t step = 0;        // finished optimizer steps, this one included: the first is 1
  int64_t tokens = 0;      // seen since the start of the run
  double loss = 0.0;       // mean over the valid tokens of the global batch
  double grad_norm = 0.0;  // global, before clipping
  double lr = 0.0;
  double step_seconds = 0.0;       // wall time of the step on the slowest rank
  double tokens_per_second = 0.0;  // of the whole run
  double tflops_per_device = 0.0;  // model FLOPs
  std::optional<double> mfu;       // fraction of the devices' peak, where that is known
  std::optional<double> hfu;
  int64_t peak_memory = 0;                // bytes of the fullest device
  std::optional<double> validation_loss;  // on steps that evaluated
  // Wall seconds beside the steps, all on the slowest rank's clock or close to it:
  std::optional<double> start_seconds;       // on the first step of a start: from the process's to the step's begin
  std::optional<double> evaluation_seconds;  // on steps that evaluated
  std::optional<double> save_seconds;        // of a checkpoint between the step before and this one
  std::optional<double> pause_seconds;       // from the step before's end to this one's begin, whatever went on
  std::optional<double> loss_scale;       // fp16
  bool skipped = false;                   // fp16 overflow: the parameters were not changed; left out where false
};

// Without the line's end.
std::string to_json_line(const StepMetrics& metrics);
// Throws InputError, starting with `where`, where the line is no JSON object or a field has the wrong type.
StepMetrics parse_metrics(std::string_view line, const std::string& where);

// All steps of a file, in its order. A last line without an end (a writer was killed in it) is left out; any other line
// that cannot be read is an InputError that names it.
std::vector<StepMetrics> read_metrics(const std::string& path);

// The same file step by step, in memory that does not grow with it. `next` throws what read_metrics would.
class MetricsReader {
 public:
  explicit MetricsReader(std::string path);
  MetricsReader(const MetricsReader&) = delete;
  MetricsReader& operator=(const MetricsReader&) = delete;
  ~MetricsReader();

  std::optional<StepMetrics> next();  // nothing at the end
  int64_t line() const { return line_; }
  double share() const;  // of the file's bytes that are read; 0 for a pipe

 private:
  bool fill();

  std::string path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
  int64_t consumed_ = 0;
  int64_t line_ = 0;
  std::string buffer_;
  size_t begin_ = 0;  // of what is not yet handed out
};

class MetricsFile {
 public:
  // Opens for appending, and makes the file and its folder where there are none. Lines with step > resumed_step and a
  // half-written last line are removed first, by a rewrite that happens whole or not at all; resumed_step = 0 starts
  // anew.
  MetricsFile(std::string path, int64_t resumed_step);
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  ~MetricsFile();

  // On return the line is with the operating system: it survives the death of this process. Failure where the disk is
  // full; what was written of the line is taken back then.
  void append(const StepMetrics& metrics);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace ridgeline::report
