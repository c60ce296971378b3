#include "study/problem.h"

#include <sstream>
#include <utility>

#include "core/error.h"
#include "launch/threads.h"
#include "search/tune/transfer.h"
#include "spec/config.h"
#include "study/random_tokens.h"

namespace ridgeline::study {
namespace {

constexpr double kGib = 1073741824.0;
// Of a device whose machine does not say, where energy is measured: what predictions start from; the search learns the factor.
constexpr double kUnknownWatts = 100;

// Where no machine is named, all devices of a trial are one node's, and nothing else is asked of it.
spec::Machine machine_of(const StudyFile& file) {
  if (!file.machine.empty()) return spec::load_machine(file.machine);
  spec::Machine machine;
  machine.name = "unknown";
  machine.devices_per_node = std::max<int64_t>(file.devices, 1);
  return machine;
}

}  // namespace

Problem::Problem(StudyFile file, spec::TrainSpec train)
    : file_(std::move(file)), train_(std::move(train)), machine_(machine_of(file_)) {
  file_.sources.located([&] { find_points(); });
  prepare();
}

Problem::Problem(StudyFile file, spec::TrainSpec train, std::vector<search::Point> points)
    : file_(std::move(file)), train_(std::move(train)), machine_(machine_of(file_)) {
  enumerated_.emplace(std::move(points));
  points_ = &*enumerated_;
  prepare();
}

void Problem::find_points() {
  if (file_.objective.kind == ObjectiveKind::replay) {
    replay_ = search::read_replay(file_.objective.table, train_.model, file_.devices, file_.global_batch);
    points_ = &replay_->points;
    return;
  }
  enumerated_ =
      search::enumerate(file_.space, train_.model,
                        {.devices = file_.devices,
                         .devices_per_node = machine_.devices_per_node,
                         .global_batch = file_.global_batch > 0 ? file_.global_batch : train_.strategy.global_batch});
  points_ = &*enumerated_;
}

void Problem::prepare() {
  if (is_measured()) file_.sources.located([&] { spec::require_trainable(train_.model); });
  if (is_measured() && train_.data.path.empty()) {
    train_.data.path = random_tokens_path(file_);
    train_.data.validation_fraction = 0;
  }
  const bool counts_energy = file_.objective.energy == EnergySource::measured;
  if (counts_energy && machine_.device.power_w == 0) machine_.device.power_w = kUnknownWatts;
  check_power();
  if (file_.machine.empty()) return;
  evaluator_.emplace(train_.model, machine_, recipe(), train_.precision.compute);
  predictions_ = search::simulator_guesses(*evaluator_, *points_, file_.goals);
}

std::optional<simulate::Prediction> Problem::prediction(size_t point) const {
  if (!evaluator_) return std::nullopt;
  return evaluator_->predict(points().at(point).strategy);
}

void Problem::check_power() const {
  for (const search::Objective goal : file_.goals) {
    if (goal != search::Objective::joules_per_token || machine_.device.power_w > 0) continue;
    throw InputError(
        "{}: objective.goals: joules_per_token needs the machine's device.power_w, and {} does not have it; or "
        "objective.energy = \"measured\"",
        file_.sources.of("objective.goals"), machine_.name);
  }
}

cost::Recipe Problem::recipe() const {
  std::string program = file_.objective.program;
  // A table is another program's, most likely the one that the machine's figures are of.
  if (program.empty()) program = replay_ ? machine_.stack.program : "ridgeline";
  cost::Recipe recipe = cost::recipe(program);
  if (replay_ && replay_->selective_is_attention) recipe.selective_is_attention = true;
  return recipe;
}

std::string Problem::identity() const {
  // Of the config, what changes a trial: the model's shape and the precision.
  std::string text = file_.identity;
  std::istringstream lines(spec::to_toml(train_));
  std::string table;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    if (line.front() == '[') {
      table = line.substr(1, line.size() - 2);
    } else if (table == "model" || table == "precision") {
      text.append(table).append(".").append(line).append("\n");
    }
  }
  return text;
}

search::Searcher Problem::make_searcher(const std::vector<search::EarlierTrial>& earlier) const {
  const bool is_blind = file_.objective.prior == Prior::none;
  std::vector<search::Guess> guesses = is_blind ? std::vector<search::Guess>() : predictions_;
  return search::Searcher(points(), search::transferred(points(), std::move(guesses), earlier).guesses,
                          {.seed = file_.seed, .objectives = file_.goals.size(), .limit_bytes = limit_bytes()});
}

double Problem::limit_bytes() const {
  if (is_measured() && file_.executor.memory_limit_gib > 0) return file_.executor.memory_limit_gib * kGib;
  return machine_.device.memory_gib * kGib;
}

std::vector<double> Problem::costs(size_t point, double seconds, double watts) const {
  const double device_watts =
      watts > 0 ? watts / static_cast<double>(points().at(point).devices) : machine_.device.power_w;
  std::vector<double> costs;
  for (const search::Objective goal : file_.goals) {
    costs.push_back(search::cost_of(goal, points().at(point), train_.model, machine_, seconds, device_watts));
  }
  return costs;
}

double Problem::seconds_at(size_t point, double cost) const { return cost / costs(point, 1.0).front(); }

double Problem::device_bytes(double allocated) const {
  return allocated > 0 ? allocated + machine_.reserve.context_gib * kGib : 0;
}

search::Trial Problem::evaluate(size_t point) const {
  if (replay_) {
    search::Trial trial = replay_->trial(point, limit_bytes());
    if (trial.outcome == search::Outcome::ok) trial.costs = costs(point, replay_->rows.at(point).step_seconds);
    return trial;
  }
  RIDGELINE_ASSERT(evaluator_.has_value());
  const simulate::Prediction prediction = evaluator_->predict(points().at(point).strategy);
  search::Trial trial{.point = point, .peak_bytes = prediction.memory.low};
  if (prediction.fit == simulate::Fit::does_not_fit) {
    trial.outcome = search::Outcome::out_of_memory;
    trial.missing_bytes = prediction.memory.low - limit_bytes();
  } else {
    trial.costs = costs(point, prediction.step_seconds);
  }
  return trial;
}

size_t Problem::point_of(const TrialRecord& record) const {
  const auto point = points().find(record.point);
  if (!point) {
    throw Failure("{}: trial {} is at '{}', which is no point of this study any more; give the study a new store",
                  file_.store, record.number, record.point);
  }
  return *point;
}

search::Trial Problem::told(const TrialRecord& record) const {
  return {.point = point_of(record),
          .outcome = record.outcome,
          .costs = record.costs,
          .peak_bytes = record.peak_bytes,
          .missing_bytes = record.missing_bytes};
}

Layout Problem::layout(size_t point, Fidelity fidelity) const {
  if (fidelity == Fidelity::cheap && has_cheap_trials()) return cheap_layout(point);
  return {train_.model, points().at(point).strategy, points().at(point).devices};
}

// A replica keeps its number of micro-batches, and with it the share of the pipeline's bubble.
Layout Problem::cheap_layout(size_t point) const {
  const Layout whole = layout(point, Fidelity::whole);
  Layout cheap = whole;
  const FidelitySpec& fidelity = file_.fidelity;
  if (fidelity.layers > 0) cheap.model.layers = std::min(cheap.model.layers, fidelity.layers);
  spec::Strategy& strategy = cheap.strategy;
  if (fidelity.devices > 0) {
    const int64_t of_one = strategy.tensor * strategy.context * strategy.pipeline;
    const int64_t replicas = std::max<int64_t>(1, fidelity.devices / of_one);
    strategy.global_batch = strategy.global_batch / strategy.data * std::min(strategy.data, replicas);
    strategy.data = std::min(strategy.data, replicas);
  }
  cheap.devices = strategy.ranks();
  if (!spec::is_legal(strategy, cheap.model)) return whole;
  if (!cheap_evaluator_) {
    cheap_evaluator_.emplace(cheap.model, machine_, recipe(), train_.precision.compute);
  }
  const simulate::Prediction as_run = cheap_evaluator_->predict(strategy);
  const search::Guess& guess = predictions_.at(point);
  cheap.seconds_ratio = seconds_at(point, guess.costs.front()) / as_run.step_seconds;
  cheap.bytes_ratio = guess.peak_bytes / as_run.memory.low;
  // One that needs more memory than the whole could fail where the whole would run.
  return cheap.bytes_ratio >= 1 ? cheap : whole;
}

spec::TrainSpec trial_config(const Problem& problem, const Layout& layout, int64_t steps, const std::string& run_folder) {
  spec::TrainSpec train = problem.train();
  if (layout.model.layers != train.model.layers) train.model_from.clear();
  train.model = layout.model;
  train.strategy = layout.strategy;
  train.training.run = run_folder;
  train.training.steps = steps;
  train.training.log_every = 1;
  train.evaluation.every = 0;
  train.checkpoint.every = 0;
  train.checkpoint.at_end = false;
  train.checkpoint.resume = false;
  const int64_t slots = problem.file().executor.slots;
  if (train.training.threads == 0 && slots > 1 && problem.file().executor.kind == "local") {
    // Each run would take all cores of the machine for itself.
    train.training.threads =
        std::max<int64_t>(1, launch::usable_cores() / (slots * layout.devices));
  }
  return train;
}

}  // namespace ridgeline::study
