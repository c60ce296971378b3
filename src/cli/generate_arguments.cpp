#include "cli/generate_arguments.h"

#include "cli/set_option.h"
#include "core/error.h"
#include "data/tokenize.h"
#include "launch/environment.h"

namespace ridgeline::cli {
namespace {

constexpr double kMost = 1e12;

void add_sampling(CLI::App& command, GenerateArguments& arguments) {
  command.add_option("--temperature", arguments.temperature, "0: always the likeliest token")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  command.add_option("--top-k", arguments.top_k, "choose among the K likeliest tokens; 0: among all")
      ->capture_default_str()
      ->check(CLI::Range(0.0, kMost));
  command.add_option("--top-p", arguments.top_p, "choose among the likeliest tokens that reach probability P together")
      ->capture_default_str()
      ->check(CLI::Range(1e-9, 1.0));
  command.add_option("--seed", arguments.seed, "the same seed gives the same text")->capture_default_str();
  command.add_option("--samples", arguments.samples, "texts to write")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e6));
}

}  // namespace

void add_generate_arguments(CLI::App& command, GenerateArguments& arguments) {
  command.add_option("PATH", arguments.path, "run folder (its newest complete checkpoint), or one checkpoint")
      ->required();
  auto* prompt = command.add_option("--prompt", arguments.prompt, "text to continue; none: a new document");
  command.add_option("--prompt-tokens", arguments.prompt_tokens, "the prompt as numbers of tokens: 1,2,3")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->excludes(prompt);
  command.add_option("--tokens", arguments.tokens, "tokens to write")
      ->capture_default_str()
      ->check(CLI::Range(1.0, kMost));
  add_sampling(command, arguments);
  command.add_flag("--stop-at-end", arguments.stop_at_end, "stop where the model ends the document");
  command.add_flag("--json", arguments.wants_json, "print one JSON document");
  add_set_option(command, arguments.sets, "the saved config");
}

SavedRun load(const GenerateArguments& arguments) {
  const launch::RankEnvironment environment = launch::detect();
  if (environment.world > 1) {
    throw InputError("generate writes on one rank, and {} has started {}; start one", environment.launcher,
                     environment.world);
  }
  SavedRun run = open_saved_run(arguments.path, arguments.sets);
  if (run.spec.model.vocabulary == data::kByteVocabulary) return run;
  if (arguments.prompt_tokens.empty()) {
    throw InputError(
        "{}: the model's vocabulary is {}: its tokens are not bytes (which make {}), and the checkpoint holds no tokenizer; "
        "give the prompt as numbers of tokens by --prompt-tokens 1,2,3 (the continuation is printed as numbers too)",
        run.checkpoint.string(), run.spec.model.vocabulary, data::kByteVocabulary);
  }
  if (arguments.stop_at_end) {
    throw InputError("--stop-at-end: which token ends a document of a vocabulary of {} is not known",
                     run.spec.model.vocabulary);
  }
  return run;
}

std::vector<std::string> engine_words(const GenerateArguments& arguments) {
  std::vector<std::string> words = {"generate",
                                    fmt::format("--tokens={}", arguments.tokens),
                                    fmt::format("--temperature={}", arguments.temperature),
                                    fmt::format("--top-k={}", arguments.top_k),
                                    fmt::format("--top-p={}", arguments.top_p),
                                    fmt::format("--seed={}", arguments.seed),
                                    fmt::format("--samples={}", arguments.samples)};
  if (!arguments.prompt.empty()) words.push_back("--prompt=" + arguments.prompt);
  for (const int64_t token : arguments.prompt_tokens) words.push_back(fmt::format("--prompt-tokens={}", token));
  if (arguments.stop_at_end) words.push_back("--stop-at-end");
  if (arguments.wants_json) words.push_back("--json");
  for (const std::string& assignment : arguments.sets) words.push_back("--set=" + assignment);
  words.insert(words.end(), {"--", arguments.path});
  return words;
}

}  // namespace ridgeline::cli
