// What a Store is made of, for the back ends that hand it on to c10d.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "mesh/store.h"

namespace ridgeline::mesh {

struct Store::State {
  enum class Kind { memory, file, tcp };
  Kind kind = Kind::memory;
  c10::intrusive_ptr<c10d::Store> store;
  std::string address;  // or path
  int port = 0;
  bool host = false;
  std::string prefix;
  std::string description;
};

}  // namespace ridgeline::mesh
