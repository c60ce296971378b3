// The learning rate of each step, from 0. Step s has the value that the schedules of Hugging Face transformers
// (get_constant_, get_cosine_, get_linear_schedule_with_warmup, get_wsd_schedule) have after s + 1 calls, scaled to
// fall to min_lr instead of 0: the first step of a warm-up of w steps has lr / w, step w - 1 has lr, and min_lr is
// reached at step decay_steps - 1 and kept.
#pragma once

#include <cstdint>

#include "spec/train.h"

namespace ridgeline::optim {

// `total_steps` stands in where optimizer.decay_steps is 0.
double learning_rate(const spec::OptimizerSpec& optimizer, int64_t total_steps, int64_t step);

}  // namespace ridgeline::optim
