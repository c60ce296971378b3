// The one JSON document that a command prints for --json.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

namespace ridgeline::cli {

// Text that is not UTF-8, such as a path may be, is replaced and not refused.
inline void print_json(const nlohmann::json& document) {
  std::puts(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

}  // namespace ridgeline::cli
