// A quantity over points that is learned by a Gaussian process whose kernel follows the data: refitted when the number
// of observations has grown by about a quarter, extended one observation at a time in between.
//
// What it says is a function of the observations in their order alone, however often and when it was asked.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "search/surrogate/fit_kernel.h"
#include "search/surrogate/gaussian_process.h"

namespace ridgeline::search {

class ProcessModel {
 public:
  // Values are told less a prior mean; `prior_scale`: how far they are expected to lie from it before there are data,
  // in units of a kernel whose terms are about one.
  ProcessModel(std::vector<LevelAxis> axes, KernelShape start, double prior_scale);

  void add(std::span<const uint16_t> levels, double value);
  size_t size() const { return observations_.size(); }

  // Over these candidates from now on; observations are kept.
  void look_at(std::shared_ptr<const LevelColumns> candidates);
  const Posterior& posterior();
  const GaussianProcess& process();

  // The same over other points, without changing which ones are looked at.
  Posterior posterior_of(std::shared_ptr<const LevelColumns> points) const;

 private:
  GaussianProcess make(std::shared_ptr<const LevelColumns> candidates, const KernelShape& shape) const;
  void update();

  std::vector<LevelAxis> axes_;
  KernelShape start_;
  double prior_scale_;
  Observations observations_;
  std::shared_ptr<const LevelColumns> candidates_;
  std::unique_ptr<GaussianProcess> process_;
  size_t fitted_to_ = 0;
  std::unique_ptr<Posterior> posterior_;
};

// The number of observations that the kernel is fitted to where there are `count`.
size_t fit_size(size_t count);

// The kernel of the first `fit_size` observations; `start` for less than two.
KernelShape scheduled_fit(const std::vector<LevelAxis>& axes, const KernelShape& start,
                          const Observations& observations, double prior_scale);

}  // namespace ridgeline::search
