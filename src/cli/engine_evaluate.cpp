// Prints what train::evaluate_command found, on rank 0.
#include "cli/engine_commands.h"
#include "cli/guarded.h"
#include "cli/print_json.h"
#include "core/log.h"
#include "launch/environment.h"
#include "train/evaluate.h"

namespace ridgeline::cli {

int run_evaluate(const EvaluateArguments& arguments) {
  const launch::RankEnvironment environment = launch::detect();
  set_up_log(environment.rank, environment.world);
  const SavedRun run = load(arguments, environment.world);
  const train::Evaluation result =
      train::evaluate_command(run.spec, run.checkpoint, run.spec.evaluation.samples, environment);
  if (environment.rank != 0) return kDone;
  if (arguments.wants_json) {
    print_json({{"checkpoint", run.checkpoint.string()},
                {"step", run.step},
                {"samples", result.samples},
                {"tokens", result.tokens},
                {"loss", result.loss},
                {"perplexity", result.perplexity},
                {"bits_per_byte", result.bits_per_byte ? nlohmann::json(*result.bits_per_byte) : nlohmann::json()}});
    return kDone;
  }
  fmt::print("step {}: held-out loss {:.4f}, perplexity {:.2f}", run.step, result.loss, result.perplexity);
  if (result.bits_per_byte) fmt::print(", {:.3f} bits per byte", *result.bits_per_byte);
  fmt::print(" ({} samples, {} tokens)\n", result.samples, result.tokens);
  return kDone;
}

}  // namespace ridgeline::cli
