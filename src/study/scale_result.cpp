#include "study/scale_result.h"

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "cost/flops.h"
#include "study/steady_state.h"

namespace ridgeline::study {
namespace {

using search::Outcome;

// 97.5 % points of Student's t, by degrees of freedom from one.
double student(size_t freedom) {
  constexpr double kPoints[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return freedom <= std::size(kPoints) ? kPoints[freedom - 1] : 1.96;
}

double devices_of(const search::Point& point) { return static_cast<double>(point.devices); }

double samples_of(const search::Point& point) { return static_cast<double>(point.strategy.global_batch); }

// Device-seconds of a sample.
double sample_cost(const search::Point& point, double seconds) {
  return seconds * devices_of(point) / samples_of(point);
}

std::vector<double> medians_of(const TrialRecord& trial, const std::vector<RunRecord>& runs, bool is_measured) {
  if (!is_measured) return trial.costs;
  std::vector<double> medians;
  for (const RunRecord& run : runs) {
    if (run.trial != trial.number || run.outcome != Outcome::ok || run.step_seconds.empty()) continue;
    medians.push_back(steady_state(run.step_seconds).seconds.median);
  }
  return medians;
}

Spread spread_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  return {median_interval(values).median, *std::min_element(values.begin(), values.end()),
          *std::max_element(values.begin(), values.end())};
}

ScalePoint point_of(const Problem& problem, size_t index, const TrialRecord* trial,
                    const std::vector<RunRecord>& runs) {
  ScalePoint point{.point = index};
  const search::Point& at = problem.points().at(index);
  const spec::ModelSpec& model = problem.train().model;
  point.batch_tokens = samples_of(at) * static_cast<double>(model.sequence);
  point.predicted = problem.prediction(index);
  if (trial == nullptr || !trial->has_ended()) return point;
  point.outcome = trial->outcome;
  point.message = trial->message;
  if (trial->outcome != Outcome::ok) return point;
  point.medians = medians_of(*trial, runs, problem.is_measured());
  point.seconds = spread_of(point.medians);
  if (!(point.seconds.middle > 0)) return point;
  point.tokens_per_second = point.batch_tokens / point.seconds.middle;
  const double device_seconds = point.seconds.middle * devices_of(at) * 1e12;
  point.tflops_per_device = cost::step_model_flops(model, at.strategy) / device_seconds;
  point.hardware_tflops_per_device = cost::step_hardware_flops(model, at.strategy) / device_seconds;
  return point;
}

std::vector<std::pair<const char*, double>> parts_of(const simulate::StepTime& time) {
  return {{"compute", time.compute},
          {"tensor_comm", time.tensor_comm},
          {"context_comm", time.context_comm},
          {"expert_comm", time.expert_comm},
          {"pipeline_comm", time.pipeline_comm},
          {"data_comm", time.data_comm},
          {"bubble", time.bubble},
          {"optimizer", time.optimizer}};
}

void compare(const Problem& problem, const ScalePoint& least, ScalePoint& point) {
  const search::Point& base = problem.points().at(least.point);
  const search::Point& at = problem.points().at(point.point);
  point.ideal_speedup = devices_of(at) / devices_of(base);
  const auto cost = [](const search::Point& of, double seconds) { return sample_cost(of, seconds); };
  if (point.seconds.middle > 0) {
    const Spread &before = least.seconds, &now = point.seconds;
    const bool is_least = point.point == least.point;
    point.efficiency = {.middle = cost(base, before.middle) / cost(at, now.middle),
                        .low = is_least ? 1 : cost(base, before.low) / cost(at, now.high),
                        .high = is_least ? 1 : cost(base, before.high) / cost(at, now.low)};
    point.speedup = point.efficiency->middle * point.ideal_speedup;
  }
  if (!least.predicted || !point.predicted) return;
  const double whole = cost(at, point.predicted->step_seconds);
  point.predicted_efficiency = cost(base, least.predicted->step_seconds) / whole;
  const auto before = parts_of(least.predicted->time), now = parts_of(point.predicted->time);
  for (size_t i = 0; i < now.size(); ++i) {
    point.loss.push_back({now[i].first, (cost(at, now[i].second) - cost(base, before[i].second)) / whole});
  }
}

}  // namespace

// T = a + b x with x = n0 / n (strong) or log2(n / n0) (weak): the share is a / (a + b), or b / a.
ScaleFit fit_scaling(ScaleKind kind, const std::vector<std::pair<double, double>>& seconds) {
  RIDGELINE_ASSERT(seconds.size() >= 2);
  const double least = std::min_element(seconds.begin(), seconds.end())->first;
  const bool is_weak = kind == ScaleKind::weak;
  const auto count = static_cast<Eigen::Index>(seconds.size());
  Eigen::MatrixX2d rows(count, 2);
  for (Eigen::Index i = 0; i < count; ++i) {
    const auto& [devices, time] = seconds[static_cast<size_t>(i)];
    rows.row(i) << 1 / time, (is_weak ? std::log2(devices / least) : least / devices) / time;
  }
  const Eigen::Matrix2d normal = rows.transpose() * rows;
  const Eigen::Vector2d law = normal.ldlt().solve(rows.transpose() * Eigen::VectorXd::Ones(count));
  const double squares = (rows * law - Eigen::VectorXd::Ones(count)).squaredNorm();
  const double first = is_weak ? law(0) : law(0) + law(1);
  ScaleFit fit{.points = seconds.size(), .seconds = first, .residual = std::sqrt(squares / static_cast<double>(count))};
  fit.share.middle = is_weak ? law(1) / law(0) : law(0) / first;
  const Eigen::Vector2d slope = is_weak ? Eigen::Vector2d(-law(1) / (law(0) * law(0)), 1 / law(0))
                                        : Eigen::Vector2d(law(1) / (first * first), -law(0) / (first * first));
  fit.has_interval = count > 2;
  double half = 0;
  if (fit.has_interval) {
    const double variance = squares / static_cast<double>(count - 2) * slope.dot(normal.inverse() * slope);
    half = student(static_cast<size_t>(count - 2)) * std::sqrt(std::max(0.0, variance));
  }
  fit.share.low = fit.share.middle - half;
  fit.share.high = fit.share.middle + half;
  return fit;
}

ScaleResult scale_result(const ScaleFile& file, const Problem& problem, const std::vector<TrialRecord>& trials,
                         const std::vector<RunRecord>& runs) {
  ScaleResult result;
  result.kind = file.scale.kind;
  result.critical = critical_batch(problem.train().model, file.scale.critical_batch_tokens);
  for (size_t index = 0; index < problem.points().size(); ++index) {
    const auto trial = std::find_if(trials.begin(), trials.end(),
                                    [&](const TrialRecord& one) { return one.point == problem.points().key(index); });
    result.points.push_back(point_of(problem, index, trial == trials.end() ? nullptr : &*trial, runs));
  }
  std::sort(result.points.begin(), result.points.end(), [&](const ScalePoint& a, const ScalePoint& b) {
    return problem.points().at(a.point).devices < problem.points().at(b.point).devices;
  });
  const auto least = std::find_if(result.points.begin(), result.points.end(),
                                  [](const ScalePoint& point) { return point.seconds.middle > 0; });
  if (least == result.points.end()) return result;
  const ScalePoint base = *least;
  std::vector<std::pair<double, double>> seconds;
  size_t ran = 0;
  for (ScalePoint& point : result.points) {
    compare(problem, base, point);
    for (const double median : point.medians)
      seconds.emplace_back(devices_of(problem.points().at(point.point)), median);
    ran += point.seconds.middle > 0 ? 1 : 0;
  }
  if (ran >= 2) result.fit = fit_scaling(result.kind, seconds);
  return result;
}

}  // namespace ridgeline::study
