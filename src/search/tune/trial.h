// A trial: one attempt at a point of a study, and how it ended.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ridgeline::search {

enum class Outcome {
  ok,
  out_of_memory,
  timeout,
  invalid,  // refused before its first step
  crashed,
  infrastructure,  // a node or the network: says nothing of the point, which may be tried again
  diverged,
  stopped_early,  // hopeless: `costs` hold what it was seen to take, a lower bound
};
std::string to_string(Outcome outcome);
Outcome parse_outcome(const std::string& text);  // throws InputError that lists the names

// Costs are positive and the lower the better: seconds, or seconds a token; a rate is told as its reciprocal.
struct Trial {
  size_t point = 0;  // of the study's PointSet
  Outcome outcome = Outcome::ok;
  std::vector<double> costs = {};  // one an objective; empty where it failed
  double peak_bytes = 0;           // of the fullest device; 0: not known
  double missing_bytes = 0;        // out of memory: by how much it fell short; 0: not known
};

}  // namespace ridgeline::search
