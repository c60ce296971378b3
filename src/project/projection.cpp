#include "project/projection.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "spec/parameters.h"

namespace ridgeline::project {
namespace {

constexpr double kHour = 3600, kDay = 86400;
constexpr double kMostEvents = 3e7;                 // failures and jobs of all plays together: some seconds
constexpr double kKnownRate = 2, kAssumedRate = 3;  // by what a mean time between failures may be wrong

// Steps at each batch, the ramp's first.
struct Phase {
  int64_t global_batch = 0;
  double steps = 0;
};

std::vector<Phase> phases_of(const StepModel& model, const Conditions& conditions) {
  const spec::Strategy& strategy = model.spec().strategy;
  double samples = conditions.tokens / static_cast<double>(model.spec().model.sequence);
  std::vector<Phase> phases;
  if (conditions.ramp) {
    const BatchRamp& ramp = *conditions.ramp;
    const int64_t growth = strategy.global_batch - ramp.start;
    if (ramp.start < 1 || ramp.increment < 1 || growth <= 0 || growth % ramp.increment != 0) {
      throw InputError("ramp from {} by {}: expected to reach strategy.global_batch = {} in whole steps from below",
                       ramp.start, ramp.increment, strategy.global_batch);
    }
    if (ramp.samples >= samples) {
      throw InputError("ramp over {} samples: the whole training has {}; shorten the ramp", format_count(ramp.samples),
                       format_count(samples));
    }
    const double each = ramp.samples / static_cast<double>(growth / ramp.increment);
    for (int64_t batch = ramp.start; batch < strategy.global_batch; batch += ramp.increment) {
      if (!model.is_legal(conditions.devices, batch)) {
        throw InputError(
            "ramp: a batch of {} does not divide over {} devices in micro-batches of {}; use another start "
            "or increment",
            batch, conditions.devices, strategy.micro_batch);
      }
      phases.push_back({batch, each / static_cast<double>(batch)});
    }
    samples -= ramp.samples;
  }
  phases.push_back({strategy.global_batch, samples / static_cast<double>(strategy.global_batch)});
  return phases;
}

// A forward alone, of a step that also has a backward of twice its work, and with full recomputation another forward.
double predicted_evaluation(const spec::TrainSpec& spec, double step_seconds) {
  const double passes = spec.strategy.recompute == spec::Recompute::full ? 4 : 3;
  const double share = static_cast<double>(spec.evaluation.samples) / static_cast<double>(spec.strategy.global_batch);
  return step_seconds / passes * std::max(share, 1 / static_cast<double>(spec.strategy.micro_batches()));
}

double checkpoint_bytes(const spec::ModelSpec& model) {
  return kCheckpointBytesPerParameter * static_cast<double>(spec::parameter_count(model));
}

double storage_bandwidth(const spec::OperationFacts& operation, int64_t nodes) {
  const double of_nodes = operation.node_storage_gb_per_s * static_cast<double>(nodes);
  return 1e9 * (operation.storage_gb_per_s > 0 ? std::min(of_nodes, operation.storage_gb_per_s) : of_nodes);
}

class Projector {
 public:
  Projector(StepModel& steps, const Conditions& conditions) : steps_(steps), given_(conditions) {}

  Projection project() {
    if (given_.tokens <= 0) throw InputError("tokens: {}: expected a positive number", given_.tokens);
    count_work();
    if (given_.fails) find_failures();
    find_saves();
    play();
    add_energy();
    return std::move(projection_);
  }

 private:
  void count_work() {
    projection_.tokens = given_.tokens;
    projection_.devices = given_.devices;
    const int64_t nodes = (given_.devices + given_.devices_per_node - 1) / given_.devices_per_node;
    working_nodes_ = nodes;
    projection_.nodes = nodes + given_.spare_nodes;
    const spec::TrainSpec& spec = steps_.spec();
    projection_.step_seconds = steps_.seconds(given_.devices, spec.strategy.global_batch);
    Range work;
    for (const Phase& phase : phases_of(steps_, given_)) {
      work = work + steps_.seconds(given_.devices, phase.global_batch) * phase.steps;
      projection_.steps += phase.steps;
    }
    const double unramped = given_.tokens / static_cast<double>(spec.model.sequence * spec.strategy.global_batch);
    if (given_.ramp) projection_.ramp_seconds = work.middle - projection_.step_seconds.middle * unramped;
    projection_.pause_seconds = given_.pause_seconds * projection_.steps;
    if (spec.evaluation.every > 0) {
      const double evaluations = 1 + projection_.steps / static_cast<double>(spec.evaluation.every);
      const double each =
          given_.evaluation_seconds.value_or(predicted_evaluation(spec, projection_.step_seconds.middle));
      projection_.evaluation_seconds = evaluations * each;
    }
    const double beside = projection_.pause_seconds + projection_.evaluation_seconds;
    work = work + Range::exactly(beside);
    run_.work = work.middle;
    doubt_.work = work * (1 / work.middle);
  }

  void find_failures() {
    double hours = given_.operation.node_mtbf_hours;
    double factor = kKnownRate;
    if (hours <= 0) {
      hours = kAssumedNodeMtbfHours;
      factor = kAssumedRate;
      assume("a node fails every {:.0f} h: the machine file has no operation.node_mtbf_hours", hours);
    }
    run_.mtbf = hours * kHour / static_cast<double>(working_nodes_);
    doubt_.mtbf = {1 / factor, 1, factor};
    projection_.mtbf_seconds = run_.mtbf;
  }

  void find_saves() {
    projection_.checkpoint_bytes = checkpoint_bytes(steps_.spec().model);
    const double moved = project::save_seconds(steps_.spec().model, given_.operation, working_nodes_);
    run_.save = given_.save_seconds.value_or(moved);
    projection_.save_seconds = run_.save;
    if (!given_.save_seconds) assume("a save takes {}, by the storage's bandwidth", format_duration(run_.save));
    run_.start = given_.start_seconds ? *given_.start_seconds : given_.operation.start_minutes * 60 + moved;
    run_.restart = given_.operation.restart_minutes * 60;
    if (given_.job_hours) run_.job = *given_.job_hours * kHour;
    run_.wait = given_.wait_hours * kHour;
    run_.failure_ends_job = run_.wait > 0 && given_.spare_nodes == 0;

    const double step = projection_.step_seconds.middle;
    double interval = given_.interval_seconds.value_or(best_interval(run_.save, run_.mtbf));
    interval = std::min(interval, run_.work);
    projection_.interval_steps = std::max(1.0, std::round(interval / step));
    run_.interval = projection_.interval_steps * step;
    projection_.interval_seconds = run_.interval;
  }

  void play() {
    const double room = run_.job == kNever ? kNever : std::max(run_.job - run_.start - run_.save, run_.job / 100);
    const double events = run_.work / run_.mtbf + run_.work / room + 1;
    const int64_t count = std::clamp<int64_t>(static_cast<int64_t>(kMostEvents / events), 20, given_.plays);
    const Plays plays = play_many(run_, doubt_, given_.seed, count);
    projection_.spent = plays.mean;
    projection_.days = plays.whole * (1 / kDay);
    projection_.node_hours = plays.in_jobs * (static_cast<double>(projection_.nodes) / kHour);
    projection_.device_hours = plays.in_jobs * (static_cast<double>(projection_.devices) / kHour);
    if (given_.price_node_hour) projection_.cost = projection_.node_hours * *given_.price_node_hour;
  }

  void add_energy() {
    const spec::PowerFacts& power = given_.power;
    if (power.busy_w <= 0) return;
    const Spent& spent = projection_.spent;
    const double busy = spent.work + spent.lost, waiting = spent.in_jobs() - busy;
    const double devices = static_cast<double>(projection_.devices), nodes = static_cast<double>(projection_.nodes);
    constexpr double kMegawattHour = 3.6e9;  // joules
    const double of_devices = devices * (busy * power.busy_w + waiting * power.idle_w) / kMegawattHour;
    const double of_nodes = nodes * spent.in_jobs() * power.node_other_w / kMegawattHour;
    const Range relative = projection_.device_hours * (1 / projection_.device_hours.middle);
    projection_.device_energy_mwh = relative * of_devices;
    projection_.energy_mwh = relative * ((of_devices + of_nodes) * power.pue);
  }

  template <typename... Args>
  void assume(fmt::format_string<Args...> format, Args&&... args) {
    projection_.assumptions.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  StepModel& steps_;
  const Conditions& given_;
  Projection projection_;
  LongRun run_;
  Doubt doubt_;
  int64_t working_nodes_ = 0;
};

}  // namespace

double save_seconds(const spec::ModelSpec& model, const spec::OperationFacts& operation, int64_t nodes) {
  return checkpoint_bytes(model) / storage_bandwidth(operation, nodes);
}

double compute_optimal_tokens(const spec::ModelSpec& model) {
  return kTokensPerParameter * static_cast<double>(spec::parameter_count(model));
}

Projection project(StepModel& steps, const Conditions& conditions) { return Projector(steps, conditions).project(); }

}  // namespace ridgeline::project
