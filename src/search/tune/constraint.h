// A condition on the numbers of a point, as users write it: "tensor * pipeline <= 64 and micro_batch >= 4".
//
//   or, and, not            on truth values
//   < <= > >= == !=         compare whole numbers, once
//   + - * / %               whole numbers; / is cut towards zero
//   ( ), names, numbers     names as in search/tune/points.h (numbers_of), and `nodes`
//
// A number stands for "not zero" where a truth value is needed. Dividing by zero makes the condition false, an overflow
// too: such a point cannot be meant.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ridgeline::search {

class Constraint {
 public:
  // Throws InputError with the column where the text is no condition or uses a name that is not among `names`.
  // An empty text holds for all.
  Constraint(const std::string& text, const std::vector<std::string>& names);

  bool holds(const std::map<std::string, int64_t>& numbers) const;

  struct Node;

 private:
  std::shared_ptr<const Node> root_;
};

}  // namespace ridgeline::search
