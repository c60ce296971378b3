#include "cli/train_arguments.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "launch/environment.h"

namespace ridgeline::cli {
namespace {

void check_token_file(const char* key, const std::string& prefix) {
  for (const char* ending : {".bin", ".idx"}) {
    const std::string path = prefix + ending;
    if (access(path.c_str(), R_OK) == 0) continue;
    throw InputError("{} = '{}': cannot read {}: {}; expected a prefix that `ridgeline data tokenize` wrote", key,
                     prefix, path, std::strerror(errno));
  }
}

}  // namespace

void add_train_arguments(CLI::App& command, TrainArguments& arguments) {
  command.add_option("CONFIG", arguments.config, "TOML file; `ridgeline config` lists its keys")->required();
  // Each --set takes one word: a config file may follow it.
  command.add_option("--set", arguments.sets, "KEY=VALUE, over what the file says; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

spec::TrainConfig load(const TrainArguments& arguments, int ranks) {
  spec::TrainConfig config = spec::load_train_spec(arguments.config, arguments.sets);
  config.sources.located([&] {
    spec::require_trainable(config.spec.model);
    spec::derive_data(config.spec.strategy, config.spec.model, ranks);
    // One of many ranks looks for its data when it can tell the others what it misses.
    if (launch::detect().world == 1 || config.spec.data.path.empty()) check_data(config.spec.data);
  });
  return config;
}

void check_data(const spec::DataSpec& data) {
  if (data.path.empty()) {
    throw InputError("data.path is missing: expected the prefix of a token file that `ridgeline data tokenize` wrote");
  }
  check_token_file("data.path", data.path);
  if (!data.validation_path.empty()) check_token_file("data.validation_path", data.validation_path);
}

std::vector<std::string> engine_words(const TrainArguments& arguments) {
  std::vector<std::string> words = {"train"};
  for (const std::string& assignment : arguments.sets) words.push_back("--set=" + assignment);
  words.insert(words.end(), {"--", arguments.config});
  return words;
}

}  // namespace ridgeline::cli
