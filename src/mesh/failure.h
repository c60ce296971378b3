// Failures of communication, a kind of their own: when a peer has died, what a rank sees is a broken connection, and
// the watchdog then looks for the peer's own words first.
#pragma once

#include <exception>
#include <string>

#include "core/error.h"

namespace ridgeline::mesh {

class CommunicationFailure : public Failure {
 public:
  using Failure::Failure;
};

// The message of an error of torch or gloo without the stack of C++ frames that they append, on one line.
std::string plain_message(const std::exception& error);

}  // namespace ridgeline::mesh
