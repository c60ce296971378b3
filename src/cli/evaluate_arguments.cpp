#include "cli/evaluate_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/set_option.h"
#include "cli/train_arguments.h"
#include "launch/environment.h"

namespace ridgeline::cli {

void add_evaluate_arguments(CLI::App& command, EvaluateArguments& arguments) {
  command.add_option("PATH", arguments.path, "run folder (its newest complete checkpoint), or one checkpoint")
      ->required();
  command
      .add_option("--samples", arguments.samples, "held-out samples; 0: all (default: evaluation.samples of the run)")
      ->check(CLI::Range(0.0, 1e12));
  command.add_flag("--json", arguments.wants_json, "print one JSON document");
  add_set_option(command, arguments.sets, "the saved config");
}

SavedRun load(const EvaluateArguments& arguments, int ranks) {
  SavedRun run = open_saved_run(arguments.path, arguments.sets);
  if (arguments.samples) run.spec.evaluation.samples = *arguments.samples;
  // Every rank that does not share a replica is one; their optimizer state, which nothing needs here, is spread over
  // them, and their parameters where the run's were.
  run.spec.strategy.global_batch = run.spec.strategy.micro_batch * ranks;
  run.spec.strategy.zero_stage = std::max<int64_t>(run.spec.strategy.zero_stage, 1);
  run.spec.strategy.shard_group = 0;
  spec::derive_data(run.spec.strategy, run.spec.model, ranks);
  // One of many ranks looks for its data when it can tell the others what it misses.
  if (launch::detect().world == 1 || run.spec.data.path.empty()) check_data(run.spec.data);
  return run;
}

std::vector<std::string> engine_words(const EvaluateArguments& arguments) {
  std::vector<std::string> words = {"evaluate"};
  if (arguments.samples) words.push_back(fmt::format("--samples={}", *arguments.samples));
  if (arguments.wants_json) words.push_back("--json");
  for (const std::string& assignment : arguments.sets) words.push_back("--set=" + assignment);
  words.insert(words.end(), {"--", arguments.path});
  return words;
}

}  // namespace ridgeline::cli
