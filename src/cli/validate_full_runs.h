// validate --full-runs: projections of whole trainings beside what was reported of them.
#pragma once

#include <string>

namespace ridgeline::cli {

int validate_full_runs(const std::string& file, bool wants_json);

}  // namespace ridgeline::cli
