// ChromeTrace: builds a trace in Chrome's Trace Event Format (its JSON object form), which Perfetto and
// chrome://tracing open. Processes hold threads, threads hold slices; slices of one thread must nest. Times are seconds
// on one clock.
//
//   ChromeTrace trace;
//   trace.name_process(0, "rank 0");
//   trace.name_thread(0, 0, "compute");
//   trace.slice(0, 0, {.name = "F0", .category = "forward", .begin = 0.25, .end = 0.5});
//   write_whole_file(path, trace_document(trace.events()));
//
// Names may be anything: they are escaped.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ridgeline::report {

struct TraceSlice {
  std::string name;
  std::string category;
  double begin = 0;
  double end = 0;
  std::vector<std::pair<std::string, int64_t>> numbers = {};  // shown when the slice is clicked
};

class ChromeTrace {
 public:
  // Processes are shown in the order of their numbers, and so are threads.
  void name_process(int64_t process, const std::string& name);
  void name_thread(int64_t process, int64_t thread, const std::string& name);
  void slice(int64_t process, int64_t thread, const TraceSlice& slice);
  // A curve beside the threads of a process.
  void counter(int64_t process, const std::string& name, double at, double value);

  // What was added, as JSON objects with commas between them: a part of a document.
  const std::string& events() const { return events_; }

 private:
  void add(const nlohmann::ordered_json& event);

  std::string events_;
};

// The document around events. Those of several traces, such as of many ranks, are joined by kTraceSeparator.
inline constexpr std::string_view kTraceBegin = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
inline constexpr std::string_view kTraceSeparator = ",\n";
inline constexpr std::string_view kTraceEnd = "\n]}\n";
std::string trace_document(const std::string& events);

}  // namespace ridgeline::report
