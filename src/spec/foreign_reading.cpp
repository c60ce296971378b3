#include "spec/foreign_reading.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "spec/config.h"

namespace ridgeline::spec {
namespace {

constexpr size_t kMostSettings = 10'000;

template <typename Number>
std::optional<Number> parse(const std::string& text) {
  Number value{};
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (begin != end && *begin == '+') ++begin;
  const auto result = std::from_chars(begin, end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

// Whole numbers may be written as 5e8.
std::optional<int64_t> whole_number(const std::string& text) {
  if (const auto value = parse<int64_t>(text)) return value;
  const auto value = parse<double>(text);
  if (!value || std::fabs(*value) > 9e15 || std::floor(*value) != *value) return std::nullopt;
  return static_cast<int64_t>(*value);
}

}  // namespace

Reading::Reading(ForeignConfig& config, std::vector<Setting> settings, std::string file)
    : config_(config), file_(std::move(file)) {
  if (settings.size() > kMostSettings) {
    throw InputError("{}: {} settings, expected at most {}: this is no configuration file", file_, settings.size(),
                     kMostSettings);
  }
  for (Setting& setting : settings) {
    if (!index_.emplace(setting.name, entries_.size()).second) {
      throw InputError("{}: {} stands there twice; keep one", setting.where, shortened(setting.name));
    }
    entries_.push_back({std::move(setting)});
  }
}

const Setting* Reading::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second].setting;
}

const Setting* Reading::value(const std::string& name) {
  const Setting* setting = find(name);
  if (setting == nullptr || setting->type == Setting::Type::null) return nullptr;
  if (!setting->unknown.empty()) {
    ignore(name, "depends on " + shortened(setting->unknown) + ", which the file does not hold");
    return nullptr;
  }
  if (setting->text == "auto") {
    ignore(name, "left to the program that reads it");
    return nullptr;
  }
  return setting;
}

std::optional<int64_t> Reading::integer(const std::string& name, int64_t low, int64_t high) {
  const Setting* setting = value(name);
  if (setting == nullptr) return std::nullopt;
  const bool numeric =
      setting->untyped || setting->type == Setting::Type::integer || setting->type == Setting::Type::number;
  const auto found = numeric ? whole_number(setting->text) : std::nullopt;
  if (!found || *found < low || *found > high) refuse(name, fmt::format("an integer {} to {}", low, high));
  return found;
}

std::optional<double> Reading::number(const std::string& name, double low, double high) {
  const Setting* setting = value(name);
  if (setting == nullptr) return std::nullopt;
  const bool numeric =
      setting->untyped || setting->type == Setting::Type::integer || setting->type == Setting::Type::number;
  const auto found = numeric ? parse<double>(setting->text) : std::nullopt;
  if (!found || !(*found >= low && *found <= high)) refuse(name, fmt::format("a number {} to {}", low, high));
  return found;
}

std::optional<bool> Reading::boolean(const std::string& name) {
  const Setting* setting = value(name);
  if (setting == nullptr) return std::nullopt;
  const std::string& text = setting->text;
  if (setting->type == Setting::Type::boolean) return text == "true";
  if (setting->untyped && (text.empty() || text == "true" || text == "True" || text == "1")) return true;
  if (setting->untyped && (text == "false" || text == "False" || text == "0")) return false;
  refuse(name, "true or false");
}

std::optional<std::string> Reading::text(const std::string& name) {
  const Setting* setting = value(name);
  if (setting == nullptr) return std::nullopt;
  if (setting->type != Setting::Type::string) refuse(name, "a string");
  return setting->text;
}

std::optional<std::vector<double>> Reading::numbers(const std::string& name, size_t count) {
  const Setting* setting = value(name);
  if (setting == nullptr) return std::nullopt;
  std::vector<double> list;
  const std::string& text = setting->text;
  bool valid = setting->type == Setting::Type::list && text.size() >= 2 && text.front() == '[' && text.back() == ']';
  for (size_t begin = 1; valid && begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size() - 1);
    const auto number = parse<double>(text.substr(begin, end - begin));
    valid = number.has_value() && std::isfinite(*number);
    if (valid) list.push_back(*number);
    begin = end + 1;
  }
  if (!valid || list.size() != count) refuse(name, fmt::format("a list of {} numbers", count));
  return list;
}

bool Reading::is_empty_list(const std::string& name) const {
  const Setting* setting = find(name);
  return setting != nullptr && setting->type == Setting::Type::list && setting->text == "[]";
}

bool Reading::set(const std::string& name, int64_t& target, const std::string& key, int64_t low, int64_t high) {
  const auto found = integer(name, low, high);
  if (!found) return false;
  target = *found;
  understood(name, assignment(key, target));
  return true;
}

bool Reading::set(const std::string& name, uint64_t& target, const std::string& key) {
  int64_t found = 0;
  if (!set(name, found, key)) return false;
  target = static_cast<uint64_t>(found);
  return true;
}

bool Reading::set(const std::string& name, double& target, const std::string& key) {
  const auto found = number(name);
  if (!found) return false;
  target = *found;
  understood(name, assignment(key, target));
  return true;
}

bool Reading::set(const std::string& name, bool& target, const std::string& key) {
  const auto found = boolean(name);
  if (!found) return false;
  target = *found;
  understood(name, assignment(key, target));
  return true;
}

void Reading::require(const std::string& name, int64_t& target, const std::string& key, const std::string& reason) {
  if (set(name, target, key, 1)) return;
  const Setting* setting = find(name);
  if (setting != nullptr && !setting->unknown.empty()) {
    throw InputError("{}: {} depends on {}, which the file does not hold; put the number there ({})", setting->where,
                     name, shortened(setting->unknown), reason);
  }
  if (setting != nullptr) refuse(name, "an integer, for " + reason);
  throw InputError("{}: {} is missing: {}", file_, name, reason);
}

void Reading::settle(const std::string& name, std::vector<ForeignSetting>& list, const std::string& meaning) {
  const auto found = index_.find(name);
  if (found == index_.end()) return;
  Entry& entry = entries_[found->second];
  if (entry.settled) return;
  entry.settled = true;
  list.push_back({shortened(entry.setting.name), shortened(entry.setting.text), entry.setting.where, meaning});
}

void Reading::understood(const std::string& name, const std::string& meaning) {
  const Setting* setting = find(name);
  const std::string key = meaning.substr(0, meaning.find(' '));
  const bool is_key = key.find('.') != std::string::npos && std::isalpha(static_cast<unsigned char>(key.front()));
  if (setting != nullptr && is_key) sources_.record(key, setting->where + ": " + name);
  settle(name, config_.understood, meaning);
}

void Reading::beyond(const std::string& name, const std::string& meaning) { settle(name, config_.beyond, meaning); }

void Reading::ignore(const std::string& name, const std::string& reason) { settle(name, config_.ignored, reason); }

void Reading::ignore(std::initializer_list<const char*> names, const std::string& reason, const std::string& prefix) {
  for (const char* name : names) ignore(prefix + name, reason);
}

void Reading::ignore_below(const std::string& prefix, const std::string& reason) {
  for (const Entry& entry : entries_) {
    if (entry.setting.name.starts_with(prefix)) ignore(entry.setting.name, reason);
  }
}

void Reading::refuse(const std::string& name, const std::string& expected) const {
  const Setting* setting = find(name);
  if (setting == nullptr) throw InputError("{}: {}: expected {}", file_, name, expected);
  throw InputError("{}: {} = {}: expected {}", setting->where, shortened(name), shortened(setting->text), expected);
}

void Reading::finish() {
  for (const Entry& entry : entries_) {
    const Setting& setting = entry.setting;
    if (entry.settled) continue;
    ignore(setting.name, setting.type == Setting::Type::null ? "null: the program's default" : "not a key known here");
  }
  // A warm-up without the steps that it is the start of.
  TrainingSpec& training = config_.spec.training;
  const OptimizerSpec& optimizer = config_.spec.optimizer;
  const int64_t course = std::max(optimizer.warmup_steps, optimizer.decay_steps);
  if (sources_.of("training.steps") == "default" && course > training.steps) {
    training.steps = course;
    miss("training.steps: the file does not say how long to train; the length of the learning rate's course stands in");
  }
  // What the config would be refused for is found here, where the foreign setting can be named.
  sources_.located([&] {
    TrainSpec copy;
    Schema schema;
    bind(schema, copy);
    schema.read_text(to_toml(config_.spec), "as a config of Ridgeline");
    validate(config_.spec);
  });
}

std::string assignment(const std::string& key, int64_t value) { return fmt::format("{} = {}", key, value); }
std::string assignment(const std::string& key, double value) { return fmt::format("{} = {}", key, value); }
std::string assignment(const std::string& key, bool value) { return fmt::format("{} = {}", key, value); }
std::string assignment(const std::string& key, const std::string& value) {
  return fmt::format("{} = \"{}\"", key, value);
}

}  // namespace ridgeline::spec
