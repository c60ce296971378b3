#include "study/scale_file.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "launch/threads.h"
#include "search/best.h"
#include "spec/config.h"

namespace ridgeline::study {
namespace {

void bind_scale(Schema& schema, ScaleSpec& scale) {
  schema.table("scale", "What grows");
  schema.choice<ScaleKind>("scale.kind", scale.kind,
                           {{"none", ScaleKind::none}, {"weak", ScaleKind::weak}, {"strong", ScaleKind::strong}},
                           "weak: the batch grows with the devices; strong: it stays; --weak and --strong set it");
  schema.key("scale.devices", scale.devices, "numbers of devices; --devices sets them", between(1, 1e6));
  schema.key("scale.global_batch", scale.global_batch,
             "samples of a step: at every point (strong), at the smallest (weak); 0: the strategy's", between(0, 1e9));
  schema.key("scale.replica_batch", scale.replica_batch,
             "weak: samples that each replica of the given strategy has of a step; 0: by scale.global_batch",
             between(0, 1e9));
  schema.key("scale.repeats", scale.repeats, "measured runs of each point, in turns", between(1, 100));
  schema.key("scale.replan", scale.replan,
             "at each point the fastest strategy that the simulator finds, in place of [strategy]; --best sets it");
  schema.key("scale.critical_batch_tokens", scale.critical_batch_tokens,
             "tokens of a step beyond which more are of little use, where that was measured; 0: Kaplan's rule",
             between(0, 1e12));
}

void bind_all(Schema& schema, ScaleFile& file) {
  StudyFile& study = file.study;
  schema.table("", "What is scaled");
  schema.key("model", study.model, "a preset, or a config file of `ridgeline train` such as tune's best.toml");
  schema.key("machine", study.machine, "a shipped machine or a machine file; what predictions are for");
  schema.key(
      "store", study.store,
      "the study's SQLite file; empty: this file's name with -weak.sqlite or -strong.sqlite (-best before that)");
  bind_scale(schema, file.scale);
  spec::bind_strategy(schema, file.train.strategy);
  schema.table("objective", "How a point's time is found");
  schema.choice<ObjectiveKind>("objective.kind", study.objective.kind,
                               {{"measured", ObjectiveKind::measured}, {"simulate", ObjectiveKind::simulate}},
                               "training runs, or the simulator");
  schema.choice("objective.program", study.objective.program,
                {"", "ridgeline", "megatron", "megatron-core", "nemo", "deepspeed", "deepspeed-bf16"},
                "whose way of running a step the simulator assumes; empty: ridgeline");
  bind_steps(schema, study.measure);
  bind_executor(schema, study.executor);
  schema.listed_by("`ridgeline scale --keys`");
}

void read(Schema& schema, const std::string& path, const std::vector<std::string>& sets) {
  schema.read_file(path);
  for (const std::string& assignment : sets) schema.set(assignment);
  schema.apply();
}

void check(const ScaleFile& file) {
  const ScaleSpec& scale = file.scale;
  if (file.study.machine.empty() && (file.study.objective.kind == ObjectiveKind::simulate || scale.replan)) {
    throw InputError("machine is missing: expected a shipped machine or a machine file, to simulate or plan for");
  }
  if (scale.kind == ScaleKind::none) throw InputError("scale.kind is missing: give --weak or --strong");
  if (scale.devices.empty()) throw InputError("scale.devices = []: give numbers of devices, or --devices 8,16,32");
  if (scale.replica_batch > 0 && file.is_weak() && scale.replan) {
    throw InputError(
        "scale.replica_batch = {}: replicas of strategies that are planned anew differ; give scale.global_batch, which "
        "with --weak "
        "is that of the smallest number of devices, and scale.replica_batch = 0",
        scale.replica_batch);
  }
  check_steps(file.study.measure);
}

// The samples of a step on the smallest number of devices.
int64_t least_batch(const ScaleFile& file) {
  const ScaleSpec& scale = file.scale;
  const spec::Strategy& strategy = file.train.strategy;
  if (file.is_weak() && scale.replica_batch > 0) {
    const int64_t of_one = strategy.tensor * strategy.context * strategy.pipeline;
    return scale.replica_batch * std::max<int64_t>(1, file.least_devices() / of_one);
  }
  return scale.global_batch > 0 ? scale.global_batch : strategy.global_batch;
}

int64_t batch_of(const ScaleFile& file, int64_t devices) {
  const int64_t least = least_batch(file);
  if (!file.is_weak()) return least;
  if (least * devices % file.least_devices() != 0) {
    throw InputError(
        "scale.global_batch: {} samples on {} devices are no whole number on {}: give a multiple of {}, or other "
        "scale.devices",
        least, file.least_devices(), devices, file.least_devices());
  }
  return least * devices / file.least_devices();
}

// What decides a point's time, beside the model: the rule of the batch, and the strategy unless each point has its own.
std::string scale_identity(const ScaleFile& file, const Schema& schema) {
  std::string text = identity_of(schema, [&](const std::string& key) {
    if (key == "store" || key == "strategy.global_batch") return false;
    if (key.starts_with("strategy.")) return !file.scale.replan;
    return key.starts_with("objective.") || key.find('.') == std::string::npos || key == "scale.kind" ||
           key == "scale.replan" || key == "executor.memory_limit_gib";
  });
  const double devices = file.is_weak() ? static_cast<double>(file.least_devices()) : 1;
  text += fmt::format("{} = {}\n", file.is_weak() ? "samples of a device" : "samples of a step",
                      static_cast<double>(least_batch(file)) / devices);
  return text;
}

void fill(ScaleFile& file) {
  StudyFile& study = file.study;
  std::sort(file.scale.devices.begin(), file.scale.devices.end());
  file.scale.devices.erase(std::unique(file.scale.devices.begin(), file.scale.devices.end()), file.scale.devices.end());
  if (study.store.empty()) {
    const std::string name = (file.scale.replan ? "-best-" : "-") + to_string(file.scale.kind) + ".sqlite";
    study.store = std::filesystem::path(study.path).replace_extension("").string() + name;
  }
  study.devices = file.scale.devices.back();
  study.goals = {search::Objective::step_seconds};
  study.budget.trials = 0;
  study.measure.hopeless = 0;
  study.measure.confirm = file.scale.repeats > 1 ? std::numeric_limits<int64_t>::max() : 0;  // all points
  study.measure.confirm_alone = true;
  study.measure.confirm_rounds = std::max<int64_t>(1, file.scale.repeats - 1);
  study.measure.confirm_steps = study.measure.steps;
  // On the processors of one machine a rank has to be the same at every point.
  if (study.executor.kind == "local" && file.train.training.threads == 0) {
    file.train.training.threads = std::max<int64_t>(1, launch::usable_cores() / file.scale.devices.back());
  }
}

spec::Strategy replanned(simulate::Evaluator& evaluator, int64_t devices, int64_t batch) {
  const search::Ranking ranking = search::rank(evaluator, {.devices = devices, .global_batch = batch}, 1);
  if (ranking.best.empty()) {
    throw InputError("scale.devices: on {} devices no strategy with {} samples a step {}", devices, batch,
                     ranking.considered == 0 ? "is legal" : "fits; `ridgeline plan` says what would");
  }
  return ranking.best.front().strategy;
}

}  // namespace

std::string to_string(ScaleKind kind) {
  return kind == ScaleKind::weak ? "weak" : kind == ScaleKind::strong ? "strong" : "none";
}

ScaleFile load_scale_file(const std::string& path, const std::vector<std::string>& sets,
                          const std::function<spec::TrainSpec(const std::string&)>& load_model) {
  ScaleFile file;
  {  // Which model it is, whose strategy the file's [strategy] then changes.
    ScaleFile first;
    Schema schema;
    bind_all(schema, first);
    read(schema, path, sets);
    schema.sources().located([&] {
      if (first.study.model.empty()) throw InputError("model is missing: expected a preset or the path of a config");
      try {
        file.train = load_model(first.study.model);
      } catch (const InputError& error) {
        throw InputError("model = \"{}\": {}", first.study.model, error.what());
      }
    });
  }
  file.study.path = path;
  Schema schema;
  bind_all(schema, file);
  read(schema, path, sets);
  file.study.sources = schema.sources();
  file.study.sources.located([&] { check(file); });
  fill(file);
  file.study.identity = scale_identity(file, schema);
  return file;
}

std::vector<search::Point> scale_points(const ScaleFile& file, const std::vector<int64_t>& devices) {
  std::vector<search::Point> points;
  std::optional<simulate::Evaluator> evaluator;
  if (file.scale.replan) {
    const std::string& program = file.study.objective.program;
    evaluator.emplace(file.train.model, spec::load_machine(file.study.machine),
                      cost::recipe(program.empty() ? "ridgeline" : program), file.train.precision.compute);
  }
  for (const int64_t count : devices) {
    file.study.sources.located([&] {
      search::Point point{file.train.strategy, count};
      point.strategy.global_batch = batch_of(file, count);
      try {
        if (evaluator) {
          point.strategy = replanned(*evaluator, count, point.strategy.global_batch);
        } else {
          spec::derive_data(point.strategy, file.train.model, count);
        }
      } catch (const InputError& error) {
        throw InputError("{} devices, {} samples a step: {}", count, point.strategy.global_batch, error.what());
      }
      points.push_back(point);
    });
  }
  return points;
}

std::string scale_keys() {
  ScaleFile file;
  Schema schema;
  bind_all(schema, file);
  return schema.markdown();
}

}  // namespace ridgeline::study
