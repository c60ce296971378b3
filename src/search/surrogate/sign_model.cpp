#include "search/surrogate/sign_model.h"

#include <cmath>

#include "core/error.h"

namespace ridgeline::search {
namespace {

constexpr double kLabelScale = 0.4;    // of labels, for the fit of the kernel
constexpr double kLatentVariance = 8;  // of the latent value, in units of its noise
constexpr double kSlopeVariance = 16;  // over the range of a dimension
constexpr int kRounds = 15;

double normal_share(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

// density(z) / share(z), which tends to -z far below zero.
double hazard(double z) {
  if (z < -12) return -z;
  return std::exp(-0.5 * z * z) * 0.3989422804014327 / normal_share(z);
}

}  // namespace

SignModel::SignModel(std::vector<LevelAxis> axes, KernelShape start)
    : axes_(std::move(axes)), start_(std::move(start)) {}

void SignModel::add(std::span<const uint16_t> levels, bool positive) {
  RIDGELINE_ASSERT(levels.size() == axes_.size());
  labels_.levels.insert(labels_.levels.end(), levels.begin(), levels.end());
  labels_.values.push_back(positive ? 1 : -1);
  probabilities_.clear();
}

void SignModel::look_at(std::shared_ptr<const LevelColumns> candidates) {
  candidates_ = std::move(candidates);
  process_.reset();
  probabilities_.clear();
}

// Lengths and weights from a regression on the labels; the variance is that of a latent value.
KernelShape SignModel::shape() const {
  KernelShape shape = scheduled_fit(axes_, start_, labels_, kLabelScale);
  const double total = shape.bias + shape.additive + shape.pairs + shape.product;
  for (double* weight : {&shape.bias, &shape.additive, &shape.pairs, &shape.product}) {
    *weight *= kLatentVariance / total;
  }
  // Labels are flat beyond a border, and a fit to them sees no slope; a latent value may have one.
  shape.linear = kSlopeVariance * static_cast<double>(axes_.size());
  shape.noise = 1;
  return shape;
}

GaussianProcess SignModel::make(std::shared_ptr<const LevelColumns> candidates) const {
  return GaussianProcess(LevelKernel(axes_, shape()), std::move(candidates));
}

std::vector<double> SignModel::probabilities_from(const GaussianProcess& process) const {
  const std::vector<double>& labels = labels_.values;
  std::vector<double> latent = labels;
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<double> mean = process.smoothed(latent);
    for (size_t i = 0; i < labels.size(); ++i) latent[i] = mean[i] + labels[i] * hazard(labels[i] * mean[i]);
  }
  const std::vector<float> means = process.mean_of(latent), deviations = process.relative_deviations();
  std::vector<double> result;
  for (size_t c = 0; c < means.size(); ++c)
    result.push_back(normal_share(means[c] / std::sqrt(1.0 + deviations[c] * deviations[c])));
  return result;
}

const std::vector<double>& SignModel::probabilities() {
  RIDGELINE_ASSERT(candidates_ != nullptr);
  if (process_ == nullptr || fitted_to_ != fit_size(size())) {
    process_ = std::make_unique<GaussianProcess>(make(candidates_));
    fitted_to_ = fit_size(size());
    probabilities_.clear();
  }
  for (size_t i = process_->size(); i < size(); ++i) {
    process_->add({labels_.levels.data() + i * axes_.size(), axes_.size()}, labels_.values[i]);
  }
  if (probabilities_.empty()) probabilities_ = probabilities_from(*process_);
  return probabilities_;
}

std::vector<double> SignModel::probabilities_of(std::shared_ptr<const LevelColumns> points) const {
  GaussianProcess process = make(std::move(points));
  for (size_t i = 0; i < size(); ++i) {
    process.add({labels_.levels.data() + i * axes_.size(), axes_.size()}, labels_.values[i]);
  }
  return probabilities_from(process);
}

}  // namespace ridgeline::search
