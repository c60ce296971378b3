#include "search/space.h"

namespace ridgeline::search {
namespace {

using spec::Recompute;
using spec::ScheduleKind;
using spec::Strategy;

Strategy strategy_of(const Space& space, const Cut& cut) {
  Strategy strategy;
  strategy.tensor = cut.tensor;
  strategy.pipeline = cut.pipeline;
  strategy.data = cut.data;
  strategy.context = cut.context;
  strategy.context_kind = cut.context_kind;
  strategy.global_batch = space.global_batch;
  return strategy;
}

// `strategy` in each way in which its stages can take turns.
std::vector<Strategy> with_schedules(Strategy strategy, const spec::ModelSpec& model, int64_t most_chunks) {
  std::vector<Strategy> result = {strategy};
  if (strategy.pipeline == 1) return result;
  for (const ScheduleKind schedule : {ScheduleKind::gpipe, ScheduleKind::zero_bubble}) {
    strategy.schedule = schedule;
    result.push_back(strategy);
  }
  strategy.schedule = ScheduleKind::zero_bubble_v;
  strategy.virtual_pipeline = 2;
  if (model.layers % (2 * strategy.pipeline) == 0 && spec::is_legal(strategy, model)) result.push_back(strategy);
  strategy.virtual_pipeline = 1;
  strategy.schedule = ScheduleKind::one_f_one_b;
  if (model.layers % strategy.pipeline != 0) return result;
  for (const int64_t chunks : spec::divisors(model.layers / strategy.pipeline)) {
    if (chunks == 1) continue;
    if (chunks > most_chunks) break;
    strategy.virtual_pipeline = chunks;
    // What speaks against one number of chunks that divides the layers speaks against all.
    if (!spec::is_legal(strategy, model)) break;
    result.push_back(strategy);
  }
  return result;
}

// `strategy` in each way in which the experts of a layer can lie on its ranks.
std::vector<Strategy> with_experts(Strategy strategy, const spec::ModelSpec& model) {
  if (model.experts == 0) return {strategy};
  std::vector<Strategy> result;
  for (const int64_t width : {int64_t{0}, int64_t{1}}) {
    if (width == 1 && strategy.tensor == 1) break;
    strategy.expert_tensor = width;
    for (const int64_t expert : spec::divisors(model.experts)) {
      strategy.expert = expert;
      if (spec::is_legal(strategy, model)) result.push_back(strategy);
    }
  }
  return result;
}

}  // namespace

namespace {

// Those whose ranks share sequences as `of_all` says, of which tensor, context and context_kind are set.
void add_cuts(const Space& space, const spec::ModelSpec& model, Cut of_all, std::vector<Cut>& result) {
  const int64_t left = space.devices / of_all.tensor / of_all.context;
  for (const int64_t pipeline : spec::divisors(left)) {
    of_all.pipeline = pipeline;
    of_all.data = left / pipeline;
    if (spec::is_legal(strategy_of(space, of_all), model)) result.push_back(of_all);
  }
}

}  // namespace

std::vector<Cut> cuts(const Space& space, const spec::ModelSpec& model) {
  std::vector<Cut> result;
  for (const int64_t tensor : spec::divisors(space.devices)) {
    if (tensor > space.most_tensor) break;
    for (const int64_t context : spec::divisors(space.devices / tensor)) {
      if (context > space.most_context) break;
      add_cuts(space, model, {.tensor = tensor, .context = context}, result);
      if (context == 1) continue;
      add_cuts(space, model, {.tensor = tensor, .context = context, .context_kind = spec::ContextKind::all_to_all},
               result);
    }
  }
  return result;
}

namespace {

// `strategy` with each sharding, recomputation and sequence parallelism.
void for_each_saving(Strategy strategy, int64_t strongest_zero, bool can_cut_sequence,
                     const std::function<void(const Strategy&)>& visit) {
  for (int64_t zero = strongest_zero; zero >= 0; --zero) {
    strategy.zero_stage = zero;
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      strategy.recompute = recompute;
      for (int cuts_sequence = can_cut_sequence ? 1 : 0; cuts_sequence >= 0; --cuts_sequence) {
        strategy.sequence_parallel = cuts_sequence == 1;
        visit(strategy);
      }
    }
  }
}

}  // namespace

void for_each_plan(const Space& space, const spec::ModelSpec& model, const Cut& cut,
                   const std::function<void(const Strategy&)>& visit) {
  Strategy sizes = strategy_of(space, cut);
  sizes.sequence_parallel = true;
  const bool can_cut_sequence = cut.tensor > 1 && spec::is_legal(sizes, model);
  sizes.sequence_parallel = false;
  const int64_t strongest_zero = cut.data * cut.context > 1 ? 3 : 0;
  for (const int64_t micro_batch : spec::divisors(space.global_batch / cut.data)) {
    if (micro_batch > space.most_micro_batch) break;
    sizes.micro_batch = micro_batch;
    for (const Strategy& placed : with_experts(sizes, model)) {
      for (const Strategy& scheduled : with_schedules(placed, model, space.most_chunks)) {
        for_each_saving(scheduled, strongest_zero, can_cut_sequence, visit);
      }
    }
  }
}

}  // namespace ridgeline::search
