// What a study takes over from earlier ones (`warm_start`), read once, when its own store is made.
//
// A trial of the same problem (the same lines of identity but for the space, the seed and the prior) at a point of the
// new space is a known point: it counts as tried, and not against the budget. Of all others only the ratios to what was
// predicted for them then are kept (search/tune/transfer.h), of their time and of their peak, or of what they
// needed where they ran out of memory and said by how much.
#pragma once

#include "study/problem.h"

namespace ridgeline::study {

// Throws InputError for a file that is no study, or that says nothing (the text names it and why).
Beginning beginning_of(const Problem& problem);

}  // namespace ridgeline::study
