#include "search/tune/dominance.h"

#include <map>
#include <string>

#include "core/error.h"

namespace ridgeline::search {

Dominance::Dominance(const PointSet& points) {
  std::map<std::string, size_t> group_by_rest;
  for (size_t i = 0; i < points.size(); ++i) {
    const Point& point = points.at(i);
    const spec::Strategy& s = point.strategy;
    needs_.push_back({s.micro_batch, static_cast<int64_t>(s.recompute), s.zero_stage, s.sequence_parallel ? 1 : 0});
    std::string rest = fmt::format("{} {} {} {} {} {} {} {} {} {}", point.devices, s.tensor, s.pipeline,
                                   s.virtual_pipeline, s.global_batch, static_cast<int>(s.schedule), s.context,
                                   static_cast<int>(s.context_kind), s.expert, s.expert_tensor);
    for (const auto& [name, text] : point.extra) rest += fmt::format(" {}={}", name, text);
    const auto [found, is_new] = group_by_rest.emplace(rest, groups_.size());
    if (is_new) groups_.emplace_back();
    group_of_.push_back(found->second);
    groups_[found->second].push_back(i);
  }
}

bool Dominance::is_no_less(const Need& left, const Need& right) {
  return left.micro_batch >= right.micro_batch && left.recompute <= right.recompute &&
         left.zero_stage <= right.zero_stage && left.sequence_parallel <= right.sequence_parallel;
}

void Dominance::for_each_heavier(size_t point, const std::function<void(size_t)>& visit) const {
  for (const size_t other : groups_[group_of_[point]]) {
    if (other != point && is_no_less(needs_[other], needs_[point])) visit(other);
  }
}

void Dominance::for_each_lighter(size_t point, const std::function<void(size_t)>& visit) const {
  for (const size_t other : groups_[group_of_[point]]) {
    if (other != point && is_no_less(needs_[point], needs_[other])) visit(other);
  }
}

}  // namespace ridgeline::search
