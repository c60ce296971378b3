#include "search/surrogate/level_kernel.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace ridgeline::search {
namespace {

double matern(double distance) {
  const double scaled = std::sqrt(5.0) * distance;
  return (1 + scaled + scaled * scaled / 3) * std::exp(-scaled);
}

}  // namespace

LevelKernel::LevelKernel(const std::vector<LevelAxis>& axes, const KernelShape& shape)
    : bias_(shape.bias),
      linear_(shape.linear),
      additive_(shape.additive),
      pairs_(shape.pairs),
      product_(shape.product),
      noise_(shape.noise) {
  RIDGELINE_ASSERT(shape.lengths.size() == axes.size());
  const double count = static_cast<double>(std::max<size_t>(1, axes.size()));
  linear_ /= count;
  additive_ /= count;
  pairs_ /= std::max(1.0, count * (count - 1) / 2);
  for (size_t d = 0; d < axes.size(); ++d) {
    const auto& x = axes[d].coordinates;
    const auto [least, most] = std::minmax_element(x.begin(), x.end());
    const double range = std::max(*most - *least, 1e-12), middle = (*most + *least) / 2;
    Axis axis{x.size(), std::vector<float>(x.size() * x.size()), std::vector<float>(x.size() * x.size())};
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < x.size(); ++j) {
        const double distance = axes[d].unordered ? (i == j ? 0 : 1) : std::abs(x[i] - x[j]) / range;
        axis.similarity[i * x.size() + j] = static_cast<float>(matern(distance / shape.lengths[d]));
        const double product = (x[i] - middle) * (x[j] - middle) / (range * range);
        axis.product[i * x.size() + j] = axes[d].unordered ? 0 : static_cast<float>(product);
      }
    }
    axes_.push_back(std::move(axis));
  }
}

double LevelKernel::combine(double linear, double sum, double squares, double product) const {
  return bias_ + linear_ * linear + additive_ * sum + pairs_ * 0.5 * (sum * sum - squares) + product_ * product;
}

double LevelKernel::operator()(const uint16_t* left, const uint16_t* right) const {
  double linear = 0, sum = 0, squares = 0, product = 1;
  for (size_t d = 0; d < axes_.size(); ++d) {
    const size_t at = left[d] * axes_[d].levels + right[d];
    const double similarity = axes_[d].similarity[at];
    linear += axes_[d].product[at];
    sum += similarity;
    squares += similarity * similarity;
    product *= similarity;
  }
  return combine(linear, sum, squares, product);
}

void LevelKernel::row(const uint16_t* point, const LevelColumns& columns, std::span<float> result) const {
  const size_t count = result.size();
  std::vector<float> linear(count, 0), sum(count, 0), squares(count, 0), product(count, 1);
  for (size_t d = 0; d < axes_.size(); ++d) {
    const float* similarities = axes_[d].similarity.data() + point[d] * axes_[d].levels;
    const float* products = axes_[d].product.data() + point[d] * axes_[d].levels;
    const uint16_t* levels = columns[d].data();
    for (size_t i = 0; i < count; ++i) {
      const float similarity = similarities[levels[i]];
      linear[i] += products[levels[i]];
      sum[i] += similarity;
      squares[i] += similarity * similarity;
      product[i] *= similarity;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    result[i] = static_cast<float>(combine(linear[i], sum[i], squares[i], product[i]));
  }
}

}  // namespace ridgeline::search
