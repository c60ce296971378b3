// How far off predictions are on recorded runs, beside what must hold and what peers reach.
#pragma once

#include <string>
#include <vector>

namespace ridgeline::bench {

// Every known table of the folders: validation/ of this project, and where others' tables lie.
void print_accuracy(const std::vector<std::string>& folders);

}  // namespace ridgeline::bench
