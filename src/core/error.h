// Errors of the outside world.
//
// Two kinds, told apart by who can mend them:
//   InputError  the user's input is wrong (a config key, a file, a strategy that does not divide). Exit code 2.
//   Failure     the world failed (disk full, a peer died, a device error). Exit code 1.
// Both carry a message that says what, where, what was expected and what to do; compose it in that order:
//
//   throw InputError("{}:{}: strategy.tensor = 3: {} heads do not divide by 3; use one of 1, 2, 4", file, line, heads);
//
// What can only be a fault of this program is RIDGELINE_ASSERT (an InternalError, exit code 1); never use it for input.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace ridgeline {

class Error : public std::runtime_error {
 public:
  Error(const std::string& message, int exit_code) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

class InputError : public Error {
 public:
  template <typename... Args>
  explicit InputError(fmt::format_string<Args...> format, Args&&... args)
      : Error(fmt::format(format, std::forward<Args>(args)...), 2) {}
};

class Failure : public Error {
 public:
  template <typename... Args>
  explicit Failure(fmt::format_string<Args...> format, Args&&... args)
      : Error(fmt::format(format, std::forward<Args>(args)...), 1) {}
};

class InternalError : public Error {
 public:
  template <typename... Args>
  explicit InternalError(fmt::format_string<Args...> format, Args&&... args)
      : Error("internal error: " + fmt::format(format, std::forward<Args>(args)...), 1) {}
};

#define RIDGELINE_ASSERT(condition)                                                                 \
  do {                                                                                              \
    if (!(condition)) throw ::ridgeline::InternalError("{}:{}: {}", __FILE__, __LINE__, #condition); \
  } while (false)

}  // namespace ridgeline
