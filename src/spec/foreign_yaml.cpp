// YAML by its events, so that depth and size are checked while the parser runs and no tree of nodes is built: an alias
// could stand for exponentially many of them.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <istream>
#include <sstream>

#include "core/error.h"
#include "spec/foreign_text.h"

namespace ridgeline::spec {
namespace {

// Plain scalars by the core schema of YAML 1.2, with the words of YAML 1.1 that PyYAML takes for truth values.
Setting::Type plain_type(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return Setting::Type::null;
  for (const char* word : {"true", "True", "TRUE", "false", "False", "FALSE", "yes", "no", "on", "off"}) {
    if (text == word) return Setting::Type::boolean;
  }
  const char* begin = text.data() + (text.front() == '+' ? 1 : 0);
  const char* end = text.data() + text.size();
  int64_t integer = 0;
  double number = 0;
  const auto whole = std::from_chars(begin, end, integer);
  if (whole.ptr == end && whole.ec == std::errc()) return Setting::Type::integer;
  const auto real = std::from_chars(begin, end, number);
  // A number that no double holds stays a number, which is refused where it is read.
  if (real.ptr == end && begin != end && std::string("+-.0123456789").find(text.front()) != std::string::npos) {
    return Setting::Type::number;
  }
  return Setting::Type::string;
}

class Events : public YAML::EventHandler {
 public:
  explicit Events(const std::string& file) : file_(file) {}
  std::vector<Setting> settings;

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw InputError("{}: a second document starts there; expected one", at(mark));
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { scalar(mark, "?", ""); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw InputError("{}: aliases (*name) are not read here; write the value out", at(mark));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& value) override {
    scalar(mark, tag, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, /*is_list=*/true);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, /*is_list=*/false);
  }
  void OnMapEnd() override { close(); }

 private:
  // A map or list that is open. Elements of lists are named by their number.
  struct Level {
    std::string prefix;
    bool is_list = false;
    bool has_key = false;
    std::string key = {};
    int64_t count = 0;
    int line = 0;
  };

  std::string at(const YAML::Mark& mark) const { return fmt::format("{}:{}", file_, mark.line + 1); }

  void open(const YAML::Mark& mark, bool is_list) {
    if (static_cast<int>(levels_.size()) >= kDeepestForeignNesting) {
      throw InputError("{}: YAML nests deeper than {} levels", at(mark), kDeepestForeignNesting);
    }
    if (levels_.empty()) {
      if (is_list) throw InputError("{}: expected a map at its top, found a list", at(mark));
      levels_.push_back({.prefix = "", .is_list = false});
      return;
    }
    Level& level = levels_.back();
    if (!level.is_list && !level.has_key) throw InputError("{}: a map or list as a key; expected a word", at(mark));
    levels_.push_back({.prefix = next_name() + ".", .is_list = is_list});
  }

  void close() {
    if (!levels_.empty()) levels_.pop_back();
  }

  // The full name of the value that comes now.
  std::string next_name() {
    Level& level = levels_.back();
    level.has_key = false;
    return level.prefix + (level.is_list ? std::to_string(level.count++) : level.key);
  }

  void scalar(const YAML::Mark& mark, const std::string& tag, const std::string& value) {
    if (levels_.empty()) throw InputError("{}: expected a map at its top, found a word", at(mark));
    Level& level = levels_.back();
    if (!level.is_list && !level.has_key) {
      level.key = value;
      level.has_key = true;
      level.line = mark.line;
      return;
    }
    // "?" is the tag of a plain scalar, "!" of a quoted one.
    Setting::Type type = tag == "?" || tag.empty() ? plain_type(value) : Setting::Type::string;
    std::string text = value;
    if (type == Setting::Type::boolean) {
      const char first = value.front();
      text = first == 't' || first == 'T' || first == 'y' || value == "on" ? "true" : "false";
    }
    settings.push_back({.name = next_name(), .text = text, .type = type, .where = at(mark)});
  }

  const std::string& file_;
  std::vector<Level> levels_;
  int documents_ = 0;
};

}  // namespace

std::vector<Setting> settings_of_yaml(const std::string& text, const std::string& file) {
  std::istringstream stream(text);
  Events events(file);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const YAML::Exception& error) {
    throw InputError("{}:{}: not valid YAML: {}", file, error.mark.line + 1, error.msg);
  }
  return std::move(events.settings);
}

}  // namespace ridgeline::spec
