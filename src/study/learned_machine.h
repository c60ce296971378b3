// What a study's trials say of the machine: corrections of its [stack] with which the simulator would have foretold them.
//
// Five figures that every step hangs on are fitted, by their logarithms and one after the other, to the smallest sum of
// |log(predicted / measured)| over the trials that ended well, with a small price on leaving what the machine file says, so that
// a figure that no trial tells anything about stays as it was.
#pragma once

#include <string>
#include <vector>

#include "study/problem.h"

namespace ridgeline::study {

struct LearnedMachine {
  spec::Machine machine;
  size_t trials = 0;
  double error_before = 0;  // mean |predicted / measured - 1|
  double error_after = 0;
};

// Needs a machine and at least three trials that ended well; else `trials` is 0 and nothing is learned.
LearnedMachine learn_machine(const Problem& problem, const std::vector<TrialRecord>& trials);

// A machine file: the study's machine as base, and the figures that were fitted.
std::string to_toml(const LearnedMachine& learned, const Problem& problem);

}  // namespace ridgeline::study
