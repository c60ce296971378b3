#include "report/metrics.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "core/error.h"
#include "core/output_file.h"
#include "core/text_file.h"
#include "core/write_all.h"

namespace ridgeline::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLargestFile = size_t{1} << 30;  // some three million steps; of a run that is resumed
constexpr size_t kLargestLine = size_t{1} << 20;
constexpr size_t kReadBytes = size_t{1} << 18;
constexpr const char* kExpected = "a metrics.jsonl";

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

void put(Json& object, const char* key, double value) {
  object[key] = std::isfinite(value) ? Json(value) : Json(nullptr);
}
void put(Json& object, const char* key, const std::optional<double>& value) {
  if (value) put(object, key, *value);
}

[[noreturn]] void wrong_type(const std::string& where, const char* key, const Json& found, const char* expected) {
  throw InputError("{}: {} = {}: expected {}", where, key, found.dump(), expected);
}

void get(const Json& object, const std::string& where, const char* key, double& value) {
  const auto found = object.find(key);
  if (found == object.end()) return;
  if (found->is_null()) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (found->is_number()) {
    value = found->get<double>();
  } else {
    wrong_type(where, key, *found, "a number or null");
  }
}
void get(const Json& object, const std::string& where, const char* key, std::optional<double>& value) {
  if (object.contains(key)) get(object, where, key, value.emplace());
}
void get(const Json& object, const std::string& where, const char* key, int64_t& value) {
  const auto found = object.find(key);
  if (found == object.end()) return;
  if (!found->is_number_integer() || (found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX)) {
    wrong_type(where, key, *found, "a whole number");
  }
  value = found->get<int64_t>();
}
void get(const Json& object, const std::string& where, const char* key, bool& value) {
  const auto found = object.find(key);
  if (found == object.end()) return;
  if (!found->is_boolean()) wrong_type(where, key, *found, "true or false");
  value = found->get<bool>();
}

std::string read_lines(const std::string& path) { return read_text_file(path, kExpected, kLargestFile); }

// Calls visit(line, metrics) for each whole line that is not blank.
template <typename Visitor>
void visit_lines(const std::string& path, std::string_view text, Visitor visit) {
  int64_t number = 0;
  for (auto end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    ++number;
    const auto line = text.substr(0, end);
    if (!is_blank(line)) visit(line, parse_metrics(line, fmt::format("{}:{}", path, number)));
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string to_json_line(const StepMetrics& metrics) {
  Json object;
  object["step"] = metrics.step;
  object["tokens"] = metrics.tokens;
  put(object, "loss", metrics.loss);
  put(object, "grad_norm", metrics.grad_norm);
  put(object, "lr", metrics.lr);
  put(object, "step_seconds", metrics.step_seconds);
  put(object, "tokens_per_second", metrics.tokens_per_second);
  put(object, "tflops_per_device", metrics.tflops_per_device);
  put(object, "mfu", metrics.mfu);
  put(object, "hfu", metrics.hfu);
  object["peak_memory"] = metrics.peak_memory;
  put(object, "validation_loss", metrics.validation_loss);
  put(object, "start_seconds", metrics.start_seconds);
  put(object, "evaluation_seconds", metrics.evaluation_seconds);
  put(object, "save_seconds", metrics.save_seconds);
  put(object, "pause_seconds", metrics.pause_seconds);
  put(object, "loss_scale", metrics.loss_scale);
  if (metrics.skipped) object["skipped"] = true;
  return object.dump();
}

StepMetrics parse_metrics(std::string_view line, const std::string& where) {
  const auto object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("step")) {
    throw InputError("{}: expected a JSON object with a step; remove the line or move the file away", where);
  }
  StepMetrics metrics;
  get(object, where, "step", metrics.step);
  get(object, where, "tokens", metrics.tokens);
  get(object, where, "loss", metrics.loss);
  get(object, where, "grad_norm", metrics.grad_norm);
  get(object, where, "lr", metrics.lr);
  get(object, where, "step_seconds", metrics.step_seconds);
  get(object, where, "tokens_per_second", metrics.tokens_per_second);
  get(object, where, "tflops_per_device", metrics.tflops_per_device);
  get(object, where, "mfu", metrics.mfu);
  get(object, where, "hfu", metrics.hfu);
  get(object, where, "peak_memory", metrics.peak_memory);
  get(object, where, "validation_loss", metrics.validation_loss);
  get(object, where, "start_seconds", metrics.start_seconds);
  get(object, where, "evaluation_seconds", metrics.evaluation_seconds);
  get(object, where, "save_seconds", metrics.save_seconds);
  get(object, where, "pause_seconds", metrics.pause_seconds);
  get(object, where, "loss_scale", metrics.loss_scale);
  get(object, where, "skipped", metrics.skipped);
  return metrics;
}

std::vector<StepMetrics> read_metrics(const std::string& path) {
  std::vector<StepMetrics> all;
  MetricsReader reader(path);
  while (const auto metrics = reader.next()) all.push_back(*metrics);
  return all;
}

MetricsReader::MetricsReader(std::string path) : path_(std::move(path)) {
  const auto refuse = [&](const char* what, const char* reason) {
    if (descriptor_ >= 0) ::close(descriptor_);
    throw InputError("{}: {}{}; expected {}", path_, what, reason, kExpected);
  };
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) refuse("cannot read: ", std::strerror(errno));
  if (S_ISDIR(status.st_mode)) refuse("is a folder", "");
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) refuse("is not a regular file", "");
  size_ = S_ISREG(status.st_mode) ? status.st_size : 0;
}

MetricsReader::~MetricsReader() { ::close(descriptor_); }

double MetricsReader::share() const {
  return size_ > 0 ? std::min(1.0, static_cast<double>(consumed_) / static_cast<double>(size_)) : 0.0;
}

// Reads on; false at the end.
bool MetricsReader::fill() {
  if (buffer_.size() - begin_ > kLargestLine) {
    throw InputError("{}:{}: a line of more than 1 MiB; expected {}", path_, line_ + 1, kExpected);
  }
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t before = buffer_.size();
  buffer_.resize(before + kReadBytes);
  ssize_t count = -1;
  do count = ::read(descriptor_, buffer_.data() + before, kReadBytes);
  while (count < 0 && errno == EINTR);
  if (count < 0) throw Failure("{}: reading failed: {}", path_, std::strerror(errno));
  buffer_.resize(before + static_cast<size_t>(count));
  consumed_ += count;
  return count > 0;
}

std::optional<StepMetrics> MetricsReader::next() {
  size_t searched = begin_;
  while (true) {
    const size_t end = buffer_.find('\n', searched);
    if (end == buffer_.npos) {
      searched = buffer_.size() - begin_;
      if (!fill()) return std::nullopt;
      continue;
    }
    const std::string_view line(buffer_.data() + begin_, end - begin_);
    ++line_;
    searched = begin_ = end + 1;
    if (!is_blank(line)) return parse_metrics(line, fmt::format("{}:{}", path_, line_));
  }
}

MetricsFile::MetricsFile(std::string path, int64_t resumed_step) : path_(std::move(path)) {
  std::error_code error;
  if (std::filesystem::exists(path_, error)) {
    const auto text = read_lines(path_);
    std::string kept;
    visit_lines(path_, text, [&](std::string_view line, const StepMetrics& metrics) {
      if (metrics.step <= resumed_step) kept.append(line).append("\n");
    });
    if (kept != text) write_whole_file(path_, kept);
  } else if (const auto folder = std::filesystem::path(path_).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, error);  // where it fails, opening says why
  }
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw Failure("{}: cannot be opened for writing: {}", path_, std::strerror(errno));
}

MetricsFile::~MetricsFile() { ::close(descriptor_); }

void MetricsFile::append(const StepMetrics& metrics) {
  const auto line = to_json_line(metrics) + "\n";
  const auto begin = ::lseek(descriptor_, 0, SEEK_END);
  const auto outcome = write_all(descriptor_, std::as_bytes(std::span(line)));
  if (outcome.error == 0) return;
  const bool taken_back = begin >= 0 && ::ftruncate(descriptor_, begin) == 0;
  throw Failure("{}: the line of step {} cannot be written: {}{}", path_, metrics.step, std::strerror(outcome.error),
                taken_back ? "" : "; its beginning stands in the file");
}

}  // namespace ridgeline::report
