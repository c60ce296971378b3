#include "study/study_file.h"

#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline::study {
namespace {

void bind_study(Schema& schema, StudyFile& file) {
  schema.table("", "What is tuned");
  schema.key("model", file.model, "a preset, or a config file of `ridgeline train` (its data and all but its strategy is used)");
  schema.key("machine", file.machine, "a shipped machine or a machine file; what predictions are for");
  schema.key("devices", file.devices, "devices of a trial", between(0, 1e6));
  schema.key("global_batch", file.global_batch, "samples of a step", between(0, 1e7));
  schema.key("seed", file.seed, "of the search", between(0, 1e15));
  schema.key("store", file.store, "the study's SQLite file; empty: this file's name with .sqlite");
  schema.key("best", file.best, "config that is written at the end; empty: best.toml beside this file");
  schema.key("learned", file.learned,
             "machine file to write at the end, with corrections learned from the trials; empty: none");
  schema.words("warm_start", file.warm_start, "SQLite files of earlier studies, of this or another model or machine");
}

void bind_objective(Schema& schema, ObjectiveSpec& objective) {
  schema.table("objective", "What is made small or large, and how a trial finds it");
  schema.choice<ObjectiveKind>("objective.kind", objective.kind,
                               {{"measured", ObjectiveKind::measured},
                                {"simulate", ObjectiveKind::simulate},
                                {"replay", ObjectiveKind::replay}},
                               "short training runs, the simulator, or a recorded table");
  schema.words("objective.goals", objective.goals,
               "step_seconds, device_tflops, tokens_per_node_hour, joules_per_token; the first ranks, several make a "
               "Pareto front");
  schema.key("objective.table", objective.table, "CSV file of kind replay");
  schema.choice<Prior>("objective.prior", objective.prior,
                       {{"simulator", Prior::simulator}, {"none", Prior::none}},
                       "what is believed before the first trial");
  schema.choice<EnergySource>("objective.energy", objective.energy,
                              {{"limit", EnergySource::limit}, {"measured", EnergySource::measured}},
                              "what joules_per_token counts: the machine's device.power_w, or counters of this machine (kind "
                              "measured, one trial at a time by executor local)");
  schema.words("objective.energy_counters", objective.energy_counters,
               "files that each hold a growing number of joules (microjoules where the name ends in _uj), of this machine's "
               "devices; empty: Cray's node counter, else RAPL's packages");
  schema.choice("objective.program", objective.program, {"", "ridgeline", "megatron", "deepspeed", "deepspeed-bf16"},
                "whose way of running a step the simulator assumes; empty: the machine's for replay, else ridgeline");
}

void bind_limits(Schema& schema, BudgetSpec& budget, MeasureSpec& measure) {
  schema.table("budget", "What the study may take; 0: no limit");
  schema.key("budget.trials", budget.trials, "trials", between(0, 1e6));
  schema.key("budget.hours", budget.hours, "hours that the tuner is at work", between(0, 1e5));
  schema.key("budget.node_hours", budget.node_hours, "node-hours of trials", between(0, 1e9));
  bind_steps(schema, measure);
  schema.key("measure.hopeless", measure.hopeless,
             "a trial that is surely slower than the best by this share stops early; 0: none does", between(0, 100));
  schema.key("measure.confirm", measure.confirm, "best trials that are measured again at the end, in turns",
             between(0, 100));
  schema.key("measure.confirm_rounds", measure.confirm_rounds, "turns of that", between(1, 100));
  schema.key("measure.confirm_steps", measure.confirm_steps, "steps of each", between(2, 1e5));
}

void bind_fidelity(Schema& schema, FidelitySpec& fidelity) {
  schema.table("fidelity",
               "Cheaper trials (kind measured): what they take is scaled by what is predicted for the whole and for the cheap run; "
               "the best measure.confirm of them are then measured whole");
  schema.key("fidelity.layers", fidelity.layers, "layers of a trial's model; 0: all", between(0, 1e5));
  schema.key("fidelity.devices", fidelity.devices,
             "devices of a trial, by fewer replicas, with each replica's share of the batch kept; 0: all", between(0, 1e6));
}

void bind_all(Schema& schema, StudyFile& file) {
  bind_study(schema, file);
  search::bind(schema, file.space);
  bind_objective(schema, file.objective);
  bind_limits(schema, file.budget, file.measure);
  bind_fidelity(schema, file.fidelity);
  bind_executor(schema, file.executor);
  schema.listed_by("`ridgeline tune --keys`");
}

void check(StudyFile& file) {
  if (file.model.empty()) throw InputError("model is missing: expected a preset or the path of a config");
  const bool needs_machine = file.objective.kind != ObjectiveKind::measured || file.objective.prior == Prior::simulator;
  if (file.machine.empty() && needs_machine) {
    throw InputError("machine is missing: expected a shipped machine (`local-cpu` for this one) or a machine file");
  }
  const bool is_replay = file.objective.kind == ObjectiveKind::replay;
  if (file.devices == 0 && file.space.devices.empty() && file.space.preset == "none") {
    throw InputError("devices is missing: expected the number of devices of a trial");
  }
  if (is_replay == file.objective.table.empty()) {
    throw InputError("objective.table = \"{}\": expected a CSV file with objective.kind = \"replay\", and none without",
                     file.objective.table);
  }
  if (file.budget.trials == 0 && file.budget.hours == 0 && file.budget.node_hours == 0) {
    throw InputError("budget.trials = 0: expected at least one of budget.trials, budget.hours, budget.node_hours");
  }
  check_steps(file.measure);
  if (file.fidelity.is_cheap() && (file.objective.kind != ObjectiveKind::measured || file.machine.empty())) {
    throw InputError(
        "fidelity: cheap trials are measured and scaled by predictions: expected objective.kind = \"measured\" and a "
        "machine; leave fidelity.layers and fidelity.devices at 0 otherwise");
  }
  if (file.fidelity.is_cheap() && file.measure.confirm == 0) {
    throw InputError("measure.confirm = 0: expected at least 1 with [fidelity]: only a whole run says what is best");
  }
  if (file.objective.energy == EnergySource::measured &&
      (file.objective.kind != ObjectiveKind::measured || file.executor.kind != "local" || file.executor.slots != 1)) {
    throw InputError(
        "objective.energy = \"measured\": counters are of this machine as a whole: expected objective.kind = \"measured\", "
        "executor.kind = \"local\" and executor.slots = 1; \"limit\" reckons with the machine's device.power_w");
  }
  if (file.objective.goals.empty()) throw InputError("objective.goals = []: expected at least one");
  for (const std::string& goal : file.objective.goals) {
    try {
      file.goals.push_back(search::parse_objective(goal));
    } catch (const InputError& error) {
      throw InputError("objective.goals: {}", error.what());
    }
  }
}

void fill_paths(StudyFile& file) {
  const std::filesystem::path path(file.path);
  if (file.store.empty()) file.store = std::filesystem::path(path).replace_extension(".sqlite").string();
  if (file.best.empty()) file.best = (path.parent_path() / "best.toml").string();
}

// Tables whose keys decide what a trial is and costs.
bool decides(const std::string& key) {
  if (key.find('.') == std::string::npos) return key != "store" && key != "best" && key != "learned";
  return key.starts_with("space.") || key.starts_with("objective.") || key.starts_with("fidelity.") ||
         key == "executor.memory_limit_gib";
}

}  // namespace

void bind_steps(Schema& schema, MeasureSpec& measure) {
  schema.table("measure", "How a trial is measured");
  schema.key("measure.steps", measure.steps, "steps of a trial at most", between(2, 1e5));
  schema.key("measure.least_steps", measure.least_steps, "steps before it may end", between(2, 1e5));
  schema.key("measure.tolerance", measure.tolerance, "half the median's 95 % interval at which it ends, share of the median",
             between(0, 1));
}

void check_steps(const MeasureSpec& measure) {
  if (measure.least_steps <= measure.steps) return;
  throw InputError("measure.least_steps = {}: expected at most measure.steps = {}", measure.least_steps, measure.steps);
}

void bind_executor(Schema& schema, ExecutorSpec& executor) {
  schema.table("executor", "Where trials run (kind measured)");
  schema.choice("executor.kind", executor.kind, {"local", "srun", "sbatch"},
                "processes of this machine, steps of this Slurm allocation, or a Slurm job a trial");
  schema.key("executor.slots", executor.slots, "trials at once", between(1, 10000));
  schema.key("executor.deadline_seconds", executor.deadline_seconds, "a trial's time, from its start", between(0.1, 1e6));
  schema.key("executor.heartbeat_seconds", executor.heartbeat_seconds, "longest time without a finished step",
             between(0.1, 1e6));
  schema.key("executor.memory_limit_gib", executor.memory_limit_gib,
             "of a process's data (RLIMIT_DATA), GiB; 0: none. For ranks on CPUs", between(0, 1e5));
  schema.key("executor.retries", executor.retries, "of a trial that a lost node or a kill from outside ended",
             between(0, 100));
  schema.words("executor.command", executor.command, "words of a program to run in place of `ridgeline train`");
  schema.words("executor.slurm_options", executor.slurm_options, "further words for srun or sbatch: \"--account=abc\"");
  schema.key("executor.keep_folders", executor.keep_folders, "keep the folders of trials (config, log, metrics)");
}

std::string identity_of(const Schema& schema, const std::function<bool(const std::string& key)>& decides) {
  std::string text, table;
  std::istringstream lines(schema.to_toml());
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    if (line.front() == '[') {
      table = line.substr(1, line.size() - 2) + ".";
      continue;
    }
    if (decides(table + line.substr(0, line.find(' ')))) text += table + line + "\n";
  }
  return text;
}

StudyFile load_study_file(const std::string& path, const std::vector<std::string>& sets) {
  StudyFile file;
  file.path = path;
  Schema schema;
  bind_all(schema, file);
  schema.read_file(path);
  for (const std::string& assignment : sets) schema.set(assignment);
  schema.apply();
  file.sources = schema.sources();
  file.identity = identity_of(schema, decides);
  file.sources.located([&] { check(file); });
  fill_paths(file);
  return file;
}

std::string study_keys() {
  StudyFile file;
  Schema schema;
  bind_all(schema, file);
  return schema.markdown();
}

}  // namespace ridgeline::study
