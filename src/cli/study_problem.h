// What a study file asks for, ready to be searched or shown.
#pragma once

#include <string>
#include <vector>

#include "study/problem.h"

namespace ridgeline::cli {

// Throws InputError for whatever is wrong with the file, its model or its machine.
study::Problem load_problem(const std::string& study_file, const std::vector<std::string>& sets = {});

}  // namespace ridgeline::cli
