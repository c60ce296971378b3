#include "search/tune/acquisition.h"

#include <Eigen/Cholesky>
#include <cmath>

#include "core/error.h"

namespace ridgeline::search {

double log_expected_improvement(double best, double mean, double deviation) {
  const double z = (best - mean) / deviation;
  constexpr double kLogRootTwoPi = 0.9189385332046727;
  if (z > -6) {
    const double density = std::exp(-0.5 * z * z - kLogRootTwoPi);
    const double share = 0.5 * std::erfc(-z / std::sqrt(2.0));
    return std::log(deviation) + std::log(density + z * share);
  }
  // density + z share = density / z^2 (1 - 3 / z^2 + 15 / z^4 ...) for large -z.
  return std::log(deviation) - 0.5 * z * z - kLogRootTwoPi - 2 * std::log(-z) +
         std::log1p(-3 / (z * z) + 15 / (z * z * z * z));
}

void condition_on_pending(const std::vector<double>& pending, const std::vector<double>& cross, double noise,
                          std::vector<double>& variances) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto points = static_cast<Eigen::Index>(variances.size());
  const Eigen::Index count = points == 0 ? 0 : static_cast<Eigen::Index>(cross.size()) / points;
  RIDGELINE_ASSERT(static_cast<Eigen::Index>(pending.size()) == count * count &&
                   static_cast<Eigen::Index>(cross.size()) == count * points);
  if (count == 0) return;
  Eigen::MatrixXd own = Eigen::Map<const RowMajor>(pending.data(), count, count);
  own.diagonal() = own.diagonal().cwiseMax(0.0).array() + noise;
  const Eigen::LLT<Eigen::MatrixXd> factor(own);
  if (factor.info() != Eigen::Success) return;
  const Eigen::MatrixXd white = factor.matrixL().solve(Eigen::MatrixXd(Eigen::Map<const RowMajor>(cross.data(), count, points)));
  Eigen::Map<Eigen::ArrayXd>(variances.data(), points) -= white.colwise().squaredNorm().transpose().array();
}

}  // namespace ridgeline::search
