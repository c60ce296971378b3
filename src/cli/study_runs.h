// What commands that start runs of a study share: the program that a run is, where runs take place, and who may start
// them.
#pragma once

#include <memory>
#include <string>

#include "core/file_lock.h"
#include "study/executor.h"
#include "study/problem.h"

namespace ridgeline::cli {

std::string this_program();  // its path

// Null where the objective needs no processes. Throws InputError where it cannot be used here, Failure without an
// engine.
std::unique_ptr<study::Executor> executor_of(const study::Problem& problem);

// One process at a time works on a store. Waits a little for one that was just killed; then throws InputError.
FileLock lock_store(const std::string& store);

}  // namespace ridgeline::cli
