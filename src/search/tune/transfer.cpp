#include "search/tune/transfer.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "search/surrogate/process_model.h"

namespace ridgeline::search {
namespace {

constexpr double kCostScale = 0.05;  // as the search's own models start
constexpr double kPeakScale = 0.15;
constexpr double kNoise = 0.1;  // relative to the kernel's terms: another study's trial says nothing of one point alone
constexpr size_t kMostTrials = 256;  // the latest: enough to place a few dozen effects, and a fit costs their cube
constexpr size_t kBlock = 65536;     // points looked at together

// Levels of the points' dimensions, and after them those that only earlier trials have.
class SharedAxes {
 public:
  explicit SharedAxes(const PointSet& points) : points_(points) {
    for (size_t d = 0; d < points.dimensions().size(); ++d) {
      LevelAxis& axis = axes_.emplace_back();
      axis.unordered = points.dimensions()[d].scale == Scale::unordered;
      for (size_t level = 0; level < points.dimensions()[d].values.size(); ++level) {
        axis.coordinates.push_back(points.coordinate(d, level));
      }
    }
  }

  const std::vector<LevelAxis>& axes() const { return axes_; }

  // Nothing where the key does not say the value of a dimension.
  std::optional<std::vector<uint16_t>> place(const std::string& key) {
    const std::map<std::string, double> numbers = numbers_of_key(key);
    std::vector<uint16_t> levels;
    for (size_t d = 0; d < axes_.size(); ++d) {
      const Dimension& dimension = points_.dimensions()[d];
      const auto found = numbers.find(dimension.name);
      if (found == numbers.end()) return std::nullopt;
      const bool by_ratio = dimension.scale == Scale::logarithmic;
      if (by_ratio && !(found->second > 0)) return std::nullopt;
      const double coordinate = by_ratio ? std::log2(found->second) : found->second;
      std::vector<double>& known = axes_[d].coordinates;
      auto level = std::find(known.begin(), known.end(), coordinate);
      if (level == known.end()) level = known.insert(known.end(), coordinate);
      levels.push_back(static_cast<uint16_t>(level - known.begin()));
    }
    return levels;
  }

 private:
  const PointSet& points_;
  std::vector<LevelAxis> axes_;
};

struct Placed {
  std::vector<uint16_t> levels;
  double value;
};

// Means at all points, given what was seen.
std::vector<float> means_of(const PointSet& points, const std::vector<LevelAxis>& axes,
                            const std::vector<Placed>& placed, double scale) {
  KernelShape shape;
  shape.lengths.assign(axes.size(), 1.0);
  shape.noise = kNoise;
  ProcessModel model(axes, shape, scale);
  for (const Placed& trial : placed) model.add(trial.levels, trial.value);
  std::vector<float> means;
  for (size_t begin = 0; begin < points.size(); begin += kBlock) {
    const size_t end = std::min(points.size(), begin + kBlock);
    auto columns = std::make_shared<LevelColumns>(axes.size());
    for (size_t d = 0; d < axes.size(); ++d) {
      for (size_t i = begin; i < end; ++i) (*columns)[d].push_back(static_cast<uint16_t>(points.level(i, d)));
    }
    const Posterior posterior = model.posterior_of(columns);
    means.insert(means.end(), posterior.mean.begin(), posterior.mean.begin() + static_cast<ptrdiff_t>(end - begin));
  }
  return means;
}

}  // namespace

Transfer transferred(const PointSet& points, std::vector<Guess> guesses, const std::vector<EarlierTrial>& earlier) {
  Transfer result{std::move(guesses)};
  if (result.guesses.empty() || earlier.empty() || points.dimensions().empty()) return result;
  RIDGELINE_ASSERT(result.guesses.size() == points.size());
  SharedAxes axes(points);
  std::vector<Placed> costs, peaks;
  for (size_t i = earlier.size() - std::min(earlier.size(), kMostTrials); i < earlier.size(); ++i) {
    const auto levels = axes.place(earlier[i].point);
    if (!levels) continue;
    if (earlier[i].log_cost) costs.push_back({*levels, *earlier[i].log_cost});
    if (earlier[i].log_peak) peaks.push_back({*levels, *earlier[i].log_peak});
  }
  result.costs = costs.size();
  result.peaks = peaks.size();
  if (!costs.empty()) {
    const std::vector<float> means = means_of(points, axes.axes(), costs, kCostScale);
    for (size_t i = 0; i < points.size(); ++i) {
      for (double& cost : result.guesses[i].costs) cost *= std::exp(means[i]);
    }
  }
  if (!peaks.empty()) {
    const std::vector<float> means = means_of(points, axes.axes(), peaks, kPeakScale);
    for (size_t i = 0; i < points.size(); ++i) result.guesses[i].peak_bytes *= std::exp(means[i]);
  }
  return result;
}

}  // namespace ridgeline::search
