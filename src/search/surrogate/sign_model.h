// A yes or no over points, learned by a latent Gaussian process whose sign it is: probit regression.
//
// Labels say on which side of zero a point's latent value lies, not how far: the values are filled in by their mean
// given the label and the process, and the process by the values, in turn (the mean field of Albert and Chib 1993). So
// a trend goes on beyond the points that were seen, where a regression on +1 and -1 would flatten. Kernel and schedule
// as in process_model.h.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "search/surrogate/process_model.h"

namespace ridgeline::search {

class SignModel {
 public:
  SignModel(std::vector<LevelAxis> axes, KernelShape start);

  void add(std::span<const uint16_t> levels, bool positive);
  size_t size() const { return labels_.size(); }

  void look_at(std::shared_ptr<const LevelColumns> candidates);
  // Probability that a candidate's label is positive, one each.
  const std::vector<double>& probabilities();
  std::vector<double> probabilities_of(std::shared_ptr<const LevelColumns> points) const;

 private:
  KernelShape shape() const;
  GaussianProcess make(std::shared_ptr<const LevelColumns> candidates) const;
  std::vector<double> probabilities_from(const GaussianProcess& process) const;

  std::vector<LevelAxis> axes_;
  KernelShape start_;
  Observations labels_;  // +1, -1
  std::shared_ptr<const LevelColumns> candidates_;
  std::unique_ptr<GaussianProcess> process_;
  size_t fitted_to_ = 0;
  std::vector<double> probabilities_;  // empty: to be computed
};

}  // namespace ridgeline::search
