// Strict configuration: each key is declared once, and from the declaration follow reading, checking, documentation
// and writing. Nothing that a file says is ignored: an unknown key is an error that names the nearest known one.
//
//   Schema schema;
//   schema.table("optimizer", "AdamW and its learning rate");
//   schema.key("optimizer.lr", spec.lr, "peak learning rate", above(0));
//   schema.read_file("run.toml");              // checks and remembers, changes no target
//   schema.set("optimizer.lr", "3e-4");        // as --set does; wins over the file, the last one over earlier ones
//   schema.apply();                            // writes the targets, in the order of declaration
//
// A table named "" holds the keys that stand before all tables of a file; their names have no dot.
//
// A target's value at declaration is the key's default; targets must outlive the schema. Input is TOML 1.0
// of at most 1 MiB. All faults of input are InputErrors that carry file, line and key.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ridgeline {

// The numbers that a key accepts; infinities stand for "no bound".
struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;   // low itself is not allowed
  bool high_open = false;  // high itself is not allowed
  bool contains(double value) const;
  std::string to_string() const;  // ">= 1", "> 0", "0 to 1", "0 to below 1"; empty without bounds
};
Interval any_number();
Interval at_least(double low);
Interval above(double low);
Interval between(double low, double high);     // both ends allowed
Interval from_below(double low, double high);  // low <= value < high

// Where values came from: "run.toml:12", "--set" or "default". Kept after the schema is gone, so that errors which are
// found later still name file and line.
class Sources {
 public:
  std::string of(const std::string& key) const;
  void record(const std::string& key, std::string source) { sources_[key] = std::move(source); }

  // Runs `check`; an InputError leaves with the source of the first key that its text names and that was given.
  void located(const std::function<void()>& check) const;

 private:
  std::map<std::string, std::string> sources_;
};

class Schema {
 public:
  Schema();
  ~Schema();
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  // Declarations. A key's table must be declared before it; keys are "table.name" ("name" in the table "").
  void table(const std::string& name, const std::string& doc);
  void key(const std::string& name, int64_t& target, const std::string& doc, Interval allowed = any_number());
  void key(const std::string& name, uint64_t& target, const std::string& doc, Interval allowed = at_least(0));
  void key(const std::string& name, double& target, const std::string& doc, Interval allowed = any_number());
  void key(const std::string& name, bool& target, const std::string& doc);
  void key(const std::string& name, std::string& target, const std::string& doc);
  // A string that must be one of `names`.
  void choice(const std::string& name, std::string& target, std::vector<std::string> names, const std::string& doc);
  // A list of integers, each within `allowed`.
  void key(const std::string& name, std::vector<int64_t>& target, const std::string& doc,
           Interval allowed = any_number());
  // What the caller parses: a string, integer or boolean, or a list of them, each as its text.
  void words(const std::string& name, std::vector<std::string>& target, const std::string& doc);
  // An enumeration by its names.
  template <typename Enum>
  void choice(const std::string& name, Enum& target, std::vector<std::pair<std::string, Enum>> choices,
              const std::string& doc) {
    std::vector<std::string> names;
    for (const auto& choice : choices) names.push_back(choice.first);
    auto get = [&target, choices] {
      for (const auto& [text, value] : choices)
        if (value == target) return text;
      return std::string();
    };
    auto set = [&target, choices](const std::string& chosen) {
      for (const auto& [text, value] : choices)
        if (text == chosen) target = value;
    };
    declare_choice(name, std::move(names), get, set, doc);
  }
  // Where users find all keys, for the error text about an unknown one; "`ridgeline config`" where it is not called.
  void listed_by(std::string command) { listed_by_ = std::move(command); }
  // Called by apply() right after `name` was written, before keys that are declared later; only where it was given.
  void after(const std::string& name, std::function<void()> action);

  // Input.
  void read_file(const std::string& path);
  void read_text(const std::string& text, const std::string& file_name);
  void set(const std::string& name, const std::string& value);
  void set(const std::string& assignment);  // "key=value"
  void apply();

  // Output.
  const Sources& sources() const { return sources_; }
  std::vector<std::string> overrides() const;  // "optimizer.lr = 3e-4 (--set) replaces 1e-3 (run.toml:4)"
  std::vector<std::string> names() const;
  // All keys with the targets' values; reads back to the same. With docs, keys at their default are commented out.
  std::string to_toml(bool with_docs = false) const;
  std::string markdown() const;  // a section and a table of keys for each TOML table

 private:
  struct Key;  // see schema_key.h
  struct Table;
  class Reader;  // the only part that knows TOML: schema_read.cpp
  using Value = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>, std::vector<std::string>>;

  void declare(Key key);
  bool has_table(const std::string& name) const;
  void declare_choice(const std::string& name, std::vector<std::string> names, std::function<std::string()> get,
                      std::function<void(const std::string&)> set, const std::string& doc);
  Key* find(const std::string& name);
  const Key* find(const std::string& name) const;
  void give(Key& key, Value value, std::string text, std::string source);

  std::vector<Table> tables_;
  std::vector<Key> keys_;
  std::vector<std::string> overrides_;
  Sources sources_;
  std::string listed_by_ = "`ridgeline config`";
};

}  // namespace ridgeline
