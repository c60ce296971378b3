#include "report/chrome_trace.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace ridgeline::report {
namespace {

using nlohmann::ordered_json;

// The format counts microseconds; nanoseconds are as fine as clocks are.
double microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }

ordered_json metadata(const char* what, int64_t process, int64_t thread, ordered_json arguments) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", std::move(arguments)}};
}

}  // namespace

void ChromeTrace::add(const ordered_json& event) {
  if (!events_.empty()) events_ += kTraceSeparator;
  // Names that are no UTF-8 must not make the document unreadable.
  events_ += event.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void ChromeTrace::name_process(int64_t process, const std::string& name) {
  add(metadata("process_name", process, 0, {{"name", name}}));
  add(metadata("process_sort_index", process, 0, {{"sort_index", process}}));
}

void ChromeTrace::name_thread(int64_t process, int64_t thread, const std::string& name) {
  add(metadata("thread_name", process, thread, {{"name", name}}));
  add(metadata("thread_sort_index", process, thread, {{"sort_index", thread}}));
}

void ChromeTrace::slice(int64_t process, int64_t thread, const TraceSlice& slice) {
  // The end is rounded, not the duration: neighbours then touch and never overlap.
  const double begin = microseconds(slice.begin);
  ordered_json event = {{"name", slice.name},
                        {"cat", slice.category},
                        {"ph", "X"},
                        {"pid", process},
                        {"tid", thread},
                        {"ts", begin},
                        {"dur", std::round((microseconds(slice.end) - begin) * 1e3) / 1e3}};
  for (const auto& [key, value] : slice.numbers) event["args"][key] = value;
  add(event);
}

void ChromeTrace::counter(int64_t process, const std::string& name, double at, double value) {
  add({{"name", name}, {"ph", "C"}, {"pid", process}, {"ts", microseconds(at)}, {"args", {{"value", value}}}});
}

std::string trace_document(const std::string& events) {
  return std::string(kTraceBegin) + events + std::string(kTraceEnd);
}

}  // namespace ridgeline::report
