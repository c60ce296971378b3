// What the engine does for the commands that use a trained model: one rank's part, started by `ridgeline`.
#pragma once

#include "cli/evaluate_arguments.h"
#include "cli/generate_arguments.h"

namespace ridgeline::cli {

int run_generate(const GenerateArguments& arguments);
int run_evaluate(const EvaluateArguments& arguments);
int run_doctor();  // prints what doctor/host.h reads

}  // namespace ridgeline::cli
