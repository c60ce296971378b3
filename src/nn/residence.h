// Residence: hears from a stage which unit is at work, so that storage which holds only some units at a time
// (spec/flat_layout.h: layouts by units) has the right ones there. A stage without one has all of its units always.
#pragma once

#include <cstdint>
#include <optional>

namespace ridgeline::nn {

// What a unit touches while it works.
struct Uses {
  bool values = true;
  bool gradients = false;
};

class Residence {
 public:
  virtual ~Residence() = default;

  // `unit` is about to work. Returns when what it uses is there: values to read, gradients to add to. `next` works
  // after it, as far as the stage knows, and will read its values.
  virtual void enter(int64_t unit, const Uses& uses, std::optional<int64_t> next) = 0;
  // `unit` has worked. With `gradients_final` its part of this micro-batch's gradients has been added.
  virtual void leave(int64_t unit, bool gradients_final) = 0;
};

}  // namespace ridgeline::nn
