#include "search/tune/trial.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline::search {
namespace {

// In the order of the enumeration.
const std::vector<std::string>& outcome_names() {
  static const std::vector<std::string> names = {"ok",      "out_of_memory",  "timeout",  "invalid",
                                                 "crashed", "infrastructure", "diverged", "stopped_early"};
  return names;
}

}  // namespace

std::string to_string(Outcome outcome) { return outcome_names().at(static_cast<size_t>(outcome)); }

Outcome parse_outcome(const std::string& text) {
  const auto& names = outcome_names();
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    throw InputError("outcome '{}': expected one of {}{}", text.substr(0, 60), join(names), did_you_mean(text, names));
  }
  return static_cast<Outcome>(found - names.begin());
}

}  // namespace ridgeline::search
