// What a failed call says.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace ridgeline {

// The message of the Kind that `action` throws; a failed expectation where it throws another or nothing.
template <typename Kind, typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Kind& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another kind of error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace ridgeline
