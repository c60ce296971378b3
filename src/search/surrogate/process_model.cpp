#include "search/surrogate/process_model.h"

#include <algorithm>

#include "core/error.h"

namespace ridgeline::search {
namespace {

constexpr size_t kEachUntil = 12;    // below, every observation counts
constexpr size_t kLastFit = 500;     // above, the kernel stays
constexpr size_t kMostFitted = 128;  // observations that a fit looks at: it costs their cube

}  // namespace

size_t fit_size(size_t count) {
  if (count <= kEachUntil) return count;
  size_t size = kEachUntil;
  for (size_t next = size + size / 4; next <= std::min(count, kLastFit); next += next / 4) size = next;
  return size;
}

KernelShape scheduled_fit(const std::vector<LevelAxis>& axes, const KernelShape& start,
                          const Observations& observations, double prior_scale) {
  const size_t count = fit_size(observations.size()), dimensions = axes.size();
  if (count < 2) return start;
  const size_t taken = std::min(count, kMostFitted);
  Observations sample;
  for (size_t i = 0; i < taken; ++i) {
    const size_t at = i * count / taken;
    const auto begin = observations.levels.begin() + static_cast<ptrdiff_t>(at * dimensions);
    sample.levels.insert(sample.levels.end(), begin, begin + static_cast<ptrdiff_t>(dimensions));
    sample.values.push_back(observations.values[at]);
  }
  return fit_kernel(axes, start, sample, prior_scale);
}

ProcessModel::ProcessModel(std::vector<LevelAxis> axes, KernelShape start, double prior_scale)
    : axes_(std::move(axes)), start_(std::move(start)), prior_scale_(prior_scale) {}

void ProcessModel::add(std::span<const uint16_t> levels, double value) {
  RIDGELINE_ASSERT(levels.size() == axes_.size());
  observations_.levels.insert(observations_.levels.end(), levels.begin(), levels.end());
  observations_.values.push_back(value);
  posterior_.reset();
}

void ProcessModel::look_at(std::shared_ptr<const LevelColumns> candidates) {
  candidates_ = std::move(candidates);
  process_.reset();
  posterior_.reset();
}

GaussianProcess ProcessModel::make(std::shared_ptr<const LevelColumns> candidates, const KernelShape& shape) const {
  GaussianProcess process(LevelKernel(axes_, shape), std::move(candidates));
  for (size_t i = 0; i < size(); ++i) {
    process.add({observations_.levels.data() + i * axes_.size(), axes_.size()}, observations_.values[i]);
  }
  return process;
}

void ProcessModel::update() {
  RIDGELINE_ASSERT(candidates_ != nullptr);
  const size_t fit = fit_size(size());
  if (process_ == nullptr || fit != fitted_to_) {
    process_ =
        std::make_unique<GaussianProcess>(make(candidates_, scheduled_fit(axes_, start_, observations_, prior_scale_)));
    fitted_to_ = fit;
    posterior_.reset();
  }
  for (size_t i = process_->size(); i < size(); ++i) {
    process_->add({observations_.levels.data() + i * axes_.size(), axes_.size()}, observations_.values[i]);
  }
}

const GaussianProcess& ProcessModel::process() {
  update();
  return *process_;
}

const Posterior& ProcessModel::posterior() {
  update();
  if (posterior_ == nullptr) posterior_ = std::make_unique<Posterior>(process_->posterior(prior_scale_));
  return *posterior_;
}

Posterior ProcessModel::posterior_of(std::shared_ptr<const LevelColumns> points) const {
  return make(std::move(points), scheduled_fit(axes_, start_, observations_, prior_scale_)).posterior(prior_scale_);
}

}  // namespace ridgeline::search
