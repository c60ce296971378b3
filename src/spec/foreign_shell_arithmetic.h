// $((...)) of shell scripts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace ridgeline::spec {

// The value of an expression of integers, names, + - * / % and brackets; `lookup` gives a name's value. Empty where a
// name has none, the expression has other operators, divides by zero, passes 64 bits or nests deeper than 32 levels.
std::optional<int64_t> shell_arithmetic(const std::string& expression,
                                        const std::function<std::optional<std::string>(const std::string&)>& lookup);

}  // namespace ridgeline::spec
