#include "cli/saved_run.h"

#include "checkpoint/choose.h"
#include "checkpoint/reader.h"
#include "core/error.h"
#include "spec/config.h"

namespace ridgeline::cli {
namespace {

void read_saved_config(const checkpoint::CheckpointReader& reader, spec::TrainSpec& spec) {
  const auto& state = reader.manifest().state;
  const auto config = state.find("config");
  if (config == state.end() || !config->is_string()) {
    throw InputError("{}: the checkpoint does not say which config it was trained under (state.config); expected one that "
                     "`ridgeline train` wrote", reader.path().string());
  }
  Schema schema;
  spec::bind(schema, spec);
  schema.read_text(config->get<std::string>(), (reader.path() / "config").string());
  schema.apply();
}

// A model of another shape would take a part of the parameters and seem to work.
void refuse_model_keys(const std::vector<std::string>& sets, const checkpoint::Path& path) {
  for (const std::string& assignment : sets) {
    if (!assignment.starts_with("model.")) continue;
    throw InputError("--set {}: the model is the one of {}, and cannot be set", assignment, path.string());
  }
}

}  // namespace

SavedRun open_saved_run(const std::string& path, const std::vector<std::string>& sets) {
  const checkpoint::CheckpointReader reader(checkpoint::choose_checkpoint(path));
  SavedRun run{reader.path(), reader.manifest().step, {}};
  refuse_model_keys(sets, reader.path());
  read_saved_config(reader, run.spec);
  const int64_t micro_batch = run.spec.strategy.micro_batch;
  run.spec.strategy = {};
  run.spec.strategy.micro_batch = micro_batch;
  Schema schema;
  spec::bind(schema, run.spec);
  for (const std::string& assignment : sets) schema.set(assignment);
  schema.apply();
  run.spec.strategy.global_batch = run.spec.strategy.micro_batch;
  schema.sources().located([&] { spec::validate(run.spec); });
  return run;
}

}  // namespace ridgeline::cli
