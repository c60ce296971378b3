#include "search/space.h"

#include <algorithm>

namespace ridgeline::search {
namespace {

using spec::Recompute;
using spec::ScheduleKind;

struct Form {
  ScheduleKind schedule;
  int64_t chunks;
};

// How the stages of a cut may take turns with `micro_batches` of them.
std::vector<Form> forms(const Space& space, const spec::ModelSpec& model, const Cut& cut, int64_t micro_batches) {
  std::vector<Form> result = {{ScheduleKind::one_f_one_b, 1}};
  if (cut.pipeline == 1) return result;
  result.push_back({ScheduleKind::gpipe, 1});
  result.push_back({ScheduleKind::zero_bubble, 1});
  if (model.layers % (2 * cut.pipeline) == 0) result.push_back({ScheduleKind::zero_bubble_v, 2});
  if (micro_batches % cut.pipeline != 0 || model.layers % cut.pipeline != 0) return result;
  for (int64_t chunks = 2; chunks <= space.most_chunks; ++chunks) {
    if ((model.layers / cut.pipeline) % chunks == 0) result.push_back({ScheduleKind::one_f_one_b, chunks});
  }
  return result;
}

}  // namespace

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> small, large;
  for (int64_t divisor = 1; divisor <= number / divisor; ++divisor) {
    if (number % divisor != 0) continue;
    small.push_back(divisor);
    if (divisor != number / divisor) large.push_back(number / divisor);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

std::vector<Cut> cuts(const Space& space, const spec::ModelSpec& model) {
  std::vector<Cut> result;
  for (const int64_t tensor : divisors(space.devices)) {
    if (tensor > space.most_tensor || model.heads % tensor != 0 || tensor > model.vocabulary) continue;
    for (const int64_t pipeline : divisors(space.devices / tensor)) {
      if (pipeline > model.layers) break;
      const int64_t data = space.devices / tensor / pipeline;
      if (space.global_batch % data == 0) result.push_back({tensor, pipeline, data});
    }
  }
  return result;
}

void for_each_plan(const Space& space, const spec::ModelSpec& model, const Cut& cut,
                   const std::function<void(const spec::Strategy&)>& visit) {
  spec::Strategy strategy;
  strategy.tensor = cut.tensor;
  strategy.pipeline = cut.pipeline;
  strategy.data = cut.data;
  strategy.global_batch = space.global_batch;
  const int64_t samples = space.global_batch / cut.data;
  const bool can_cut_sequence = cut.tensor > 1 && model.sequence % cut.tensor == 0;
  for (const int64_t micro_batch : divisors(samples)) {
    if (micro_batch > space.most_micro_batch) break;
    strategy.micro_batch = micro_batch;
    for (const Form& form : forms(space, model, cut, samples / micro_batch)) {
      strategy.schedule = form.schedule;
      strategy.virtual_pipeline = form.chunks;
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        strategy.recompute = recompute;
        for (int cuts_sequence = can_cut_sequence ? 1 : 0; cuts_sequence >= 0; --cuts_sequence) {
          strategy.sequence_parallel = cuts_sequence == 1;
          for (int64_t zero = cut.data > 1 ? 1 : 0; zero >= 0; --zero) {
            strategy.zero_stage = zero;
            visit(strategy);
          }
          if (!space.shards_parameters || cut.data == 1 || cut.pipeline > 1) continue;
          strategy.zero_stage = 3;
          visit(strategy);
        }
      }
    }
  }
}

}  // namespace ridgeline::search
