// Reading: the settings of a foreign file, flat and in the file's order, and the account of what became of each. Shared
// by the formats; private to the sources of spec/foreign_config.h.
//
//   reading.set("/num_hidden_layers", spec.model.layers, "model.layers");   // reads, checks, writes, notes the meaning
//   if (auto stage = reading.integer("/zero_optimization/stage", 0, 3)) reading.beyond("/zero_optimization/stage",
//   ...); reading.finish();                                                       // the rest is ignored
//
// A getter is empty where the setting is missing, null, "auto", or depends on something that the file does not hold.
// Wrong types and numbers out of range are InputErrors. Reading a setting does not say what it means: call one of
// understood, beyond, ignore after it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/schema.h"
#include "spec/foreign_config.h"

namespace ridgeline::spec {

struct Setting {
  enum class Type { null, boolean, integer, number, string, list };
  std::string name;
  std::string text;  // the value; a list as JSON would write it
  Type type = Type::string;
  std::string where;
  bool untyped = false;      // from a shell: text that may be a number
  std::string unknown = {};  // "$WORLD_SIZE": what the value depends on and the file does not hold
};

class Reading {
 public:
  // Throws InputError where a name stands twice, or where there are more settings than any configuration has.
  Reading(ForeignConfig& config, std::vector<Setting> settings, std::string file);

  ForeignConfig& config() { return config_; }
  const std::string& file() const { return file_; }

  bool has(const std::string& name) const { return find(name) != nullptr; }
  std::optional<int64_t> integer(const std::string& name, int64_t low = 0, int64_t high = kMost);
  std::optional<double> number(const std::string& name, double low = 0, double high = 1e15);
  std::optional<bool> boolean(const std::string& name);
  std::optional<std::string> text(const std::string& name);
  std::optional<std::vector<double>> numbers(const std::string& name, size_t count);  // a list of so many
  bool is_empty_list(const std::string& name) const;

  // Reads `name` into `target`, which `key` of the config is; false where there is nothing to read.
  bool set(const std::string& name, int64_t& target, const std::string& key, int64_t low = 0, int64_t high = kMost);
  bool set(const std::string& name, uint64_t& target, const std::string& key);
  bool set(const std::string& name, double& target, const std::string& key);
  bool set(const std::string& name, bool& target, const std::string& key);
  // The same, and an InputError where there is nothing to read; `reason` completes "the key is missing: ".
  void require(const std::string& name, int64_t& target, const std::string& key, const std::string& reason);

  // What became of a setting. `meaning` of an understood one begins with "KEY = ": errors about that key found later
  // name the setting. Of a setting that is not in the file these say nothing.
  void understood(const std::string& name, const std::string& meaning);
  void beyond(const std::string& name, const std::string& meaning);
  void ignore(const std::string& name, const std::string& reason);
  void ignore(std::initializer_list<const char*> names, const std::string& reason, const std::string& prefix = "");
  void ignore_below(const std::string& prefix, const std::string& reason);
  void assume(const std::string& meaning) { config_.assumed.push_back(meaning); }
  void miss(const std::string& what) { config_.missing.push_back(what); }

  // Throws InputError "FILE: NAME = VALUE: expected ...".
  [[noreturn]] void refuse(const std::string& name, const std::string& expected) const;

  // Lists what nothing was said about, and checks the spec as a config file is checked.
  void finish();

  static constexpr int64_t kMost = 1'000'000'000'000;

 private:
  struct Entry {
    Setting setting;
    bool settled = false;
  };
  const Setting* find(const std::string& name) const;
  // The setting if it has a value; else notes why not.
  const Setting* value(const std::string& name);
  void settle(const std::string& name, std::vector<ForeignSetting>& list, const std::string& meaning);

  ForeignConfig& config_;
  std::string file_;
  std::vector<Entry> entries_;
  std::map<std::string, size_t> index_;
  Sources sources_;
};

// A meaning as the lists print it: "model.layers = 32".
std::string assignment(const std::string& key, int64_t value);
std::string assignment(const std::string& key, double value);
std::string assignment(const std::string& key, bool value);
std::string assignment(const std::string& key, const std::string& value);

}  // namespace ridgeline::spec
