#include "cli/train_arguments.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "checkpoint/hugging_face/reader.h"
#include "checkpoint/store.h"
#include "cli/set_option.h"
#include "core/error.h"
#include "launch/environment.h"
#include "spec/machine.h"

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

// Weights that are wrong are found before ranks start. A run that has a checkpoint does not read them.
void check_weights(const spec::TrainSpec& spec) {
  if (spec.model_from.empty()) return;
  const checkpoint::Path saved = checkpoint::Path(spec.training.run) / "checkpoints";
  if (spec.checkpoint.resume && !checkpoint::list_checkpoints(saved).empty()) return;
  checkpoint::HuggingFaceReader(spec.model_from, spec.model);
}

}  // namespace

void add_train_arguments(CLI::App& command, TrainArguments& arguments) {
  command.add_option("CONFIG", arguments.config, "TOML file; `ridgeline config` lists its keys")->required();
  add_set_option(command, arguments.sets, "the file");
  command.add_option_function<std::string>(
      "--profile-steps",
      [&arguments](const std::string& steps) { arguments.sets.push_back("training.profile_steps=" + steps); },
      "FIRST:LAST, write a trace of these steps, which Perfetto opens, to the run folder");
  command.add_option("--machine", arguments.machine,
                     "machine whose prediction the steps are compared with; a run that departs from it says so");
}

spec::TrainConfig load(const TrainArguments& arguments, int ranks) {
  spec::TrainConfig config = spec::load_train_spec(arguments.config, arguments.sets);
  if (!arguments.machine.empty()) spec::load_machine(arguments.machine);  // a wrong name is found before ranks start
  config.sources.located([&] {
    spec::require_trainable(config.spec.model);
    spec::derive_data(config.spec.strategy, config.spec.model, ranks);
    // One of many ranks looks for its data when it can tell the others what it misses.
    if (launch::detect().world == 1 || config.spec.data.path.empty()) check_data(config.spec.data);
    if (launch::detect().world == 1) check_weights(config.spec);
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
  if (!arguments.machine.empty()) words.push_back("--machine=" + arguments.machine);
  words.insert(words.end(), {"--", arguments.config});
  return words;
}

}  // namespace ridgeline::cli
