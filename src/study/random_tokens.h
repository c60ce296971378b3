// Tokens to measure with where a study's model names no data (a preset): how long a step takes does not hang on which
// they are. A token file beside the store, random and the same for the same model.
#pragma once

#include <string>

#include "study/problem.h"

namespace ridgeline::study {

// Prefix of the token file.
std::string random_tokens_path(const StudyFile& file);

// Writes it where the problem trains on it and it is not there yet.
void ensure_random_tokens(const Problem& problem);

}  // namespace ridgeline::study
