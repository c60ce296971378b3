#include "simulate/calibration.h"

#include <fmt/ranges.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/error.h"
#include "cost/kernels.h"
#include "cost/local_shares.h"
#include "simulate/collective.h"
#include "simulate/evaluator.h"
#include "simulate/shape_factor.h"
#include "spec/parameters.h"

namespace ridgeline::simulate {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using spec::StackFacts;

constexpr int64_t kLeastRuns = 3, kMostRuns = 4000;
constexpr double kHuber = 2.0;        // in noises
constexpr double kDifference = 1e-3;  // of a logarithm, for derivatives
constexpr double kMostFactorLog = 1.5;

// A constant is fitted as u = log(value + floor), so that zero is a value like others.
struct Constant {
  const char* name;
  double StackFacts::*member;
  double width;  // prior standard deviation of u
  double floor;
  double most;
};
constexpr double kAny = 1e9;
constexpr Constant kConstants[] = {
    {"product_efficiency", &StackFacts::product_efficiency, 0.2, 0, 1},
    {"fp8_product_efficiency", &StackFacts::fp8_product_efficiency, 0.2, 0, 1},
    {"product_half_depth", &StackFacts::product_half_depth, 0.5, 10, kAny},
    {"product_half_tokens", &StackFacts::product_half_tokens, 0.5, 10, kAny},
    {"attention_efficiency", &StackFacts::attention_efficiency, 0.3, 0, 1},
    {"attention_backward_efficiency", &StackFacts::attention_backward_efficiency, 0.3, 0, 1},
    {"memory_efficiency", &StackFacts::memory_efficiency, 0.2, 0, 1},
    {"launch_us", &StackFacts::launch_us, 0.5, 1, kAny},
    {"layer_host_us", &StackFacts::layer_host_us, 1.0, 10, kAny},
    {"collective_host_us", &StackFacts::collective_host_us, 1.0, 5, kAny},
    {"pair_efficiency", &StackFacts::pair_efficiency, 0.3, 0, 1},
    {"node_efficiency", &StackFacts::node_efficiency, 0.3, 0, 1},
    {"network_efficiency", &StackFacts::network_efficiency, 0.3, 0, 1},
    {"message_efficiency", &StackFacts::message_efficiency, 0.3, 0, 1},
    {"node_latency_us", &StackFacts::node_latency_us, 0.7, 2, kAny},
    {"network_latency_us", &StackFacts::network_latency_us, 0.7, 2, kAny},
    {"collective_us", &StackFacts::collective_us, 0.7, 2, kAny},
    {"optimizer_efficiency", &StackFacts::optimizer_efficiency, 0.3, 0, 1},
    {"overlap_slowdown", &StackFacts::overlap_slowdown, 1.0, 0.01, 10},
    {"micro_batch_ms", &StackFacts::micro_batch_ms, 1.0, 0.05, kAny},
    {"step_ms", &StackFacts::step_ms, 1.0, 1, kAny},
};
constexpr size_t kConstantCount = std::size(kConstants);

double to_log(const Constant& constant, double value) { return std::log(std::max(value + constant.floor, 1e-9)); }

double from_log(const Constant& constant, double u) {
  return std::clamp(std::exp(u) - constant.floor, constant.floor > 0 ? 0.0 : 1e-6, constant.most);
}

// Which shapes of the machine's table a run's layers use, by their place in it.
struct UsedShapes {
  std::vector<size_t> products, collectives;
};

class Fitting {
 public:
  Fitting(const std::vector<MeasuredRun>& runs, const spec::Machine& machine, const CalibrationOptions& options)
      : options_(options), machine_(machine) {
    for (const MeasuredRun& run : runs) {
      if (why_not(run, machine).empty() && run.step_seconds > 0) runs_.push_back(&run);
    }
    const auto count = static_cast<int64_t>(runs_.size());
    if (count < kLeastRuns || count > kMostRuns) {
      throw InputError("{} of {} runs can be predicted: a calibration takes {} to {}", count, runs.size(), kLeastRuns,
                       kMostRuns);
    }
    if (options.fits_shapes) list_shapes();
    used_.resize(runs_.size());
    if (options.fits_shapes) {
      for (size_t run = 0; run < runs_.size(); ++run) find_shapes(*runs_[run], used_[run]);
    }
    prior_ = current();
    covariance_ = prior_covariance();
    prior_solver_.compute(covariance_);
  }

  Calibration run() {
    VectorXd posterior;
    for (int step = 0; step < options_.steps && advance(posterior); ++step) continue;
    Calibration result;
    result.machine = machine_;
    result.runs = static_cast<int64_t>(runs_.size());
    const VectorXd now = current();
    for (size_t i = 0; i < kConstantCount; ++i) {
      const Constant& constant = kConstants[i];
      const double variance = std::max(0.0, posterior(static_cast<Eigen::Index>(i)));
      const double sigma = std::sqrt(variance);
      const double u = now(static_cast<Eigen::Index>(i));
      result.constants.push_back({constant.name, from_log(constant, prior_(static_cast<Eigen::Index>(i))),
                                  machine_.stack.*constant.member, from_log(constant, u - sigma),
                                  from_log(constant, u + sigma), 1 - variance / (constant.width * constant.width)});
    }
    return result;
  }

 private:
  size_t size() const { return kConstantCount + machine_.shapes.products.size() + machine_.shapes.collectives.size(); }

  VectorXd current() const {
    VectorXd u(static_cast<Eigen::Index>(size()));
    Eigen::Index at = 0;
    for (const Constant& constant : kConstants) u(at++) = to_log(constant, machine_.stack.*constant.member);
    for (const auto& rate : machine_.shapes.products) u(at++) = std::log(rate.factor);
    for (const auto& rate : machine_.shapes.collectives) u(at++) = std::log(rate.factor);
    return u;
  }

  void set(spec::Machine& machine, size_t index, double u) const {
    if (index < kConstantCount) {
      machine.stack.*kConstants[index].member = from_log(kConstants[index], u);
      return;
    }
    index -= kConstantCount;
    const double factor = std::exp(std::clamp(u, -kMostFactorLog, kMostFactorLog));
    const size_t products = machine.shapes.products.size();
    (index < products ? machine.shapes.products[index].factor : machine.shapes.collectives[index - products].factor) =
        factor;
  }

  // Kernels and messages of the units, by visitors.
  template <typename OnProduct, typename OnMessage>
  void visit(const MeasuredRun& run, const OnProduct& on_product, const OnMessage& on_message) const {
    const cost::Recipe recipe = recipe_of(run, machine_);
    const cost::LocalShares shares = cost::local_shares(run.model, run.strategy.tensor);
    const Group group{run.strategy.tensor, 1};
    const int64_t per_node = place(machine_, group).per_node;
    for (const int64_t unit : {spec::embedding_unit(), spec::layer_unit(0), spec::head_unit(run.model)}) {
      const cost::UnitWork work = cost::unit_kernels(run.model, run.strategy, shares, run.compute, recipe, unit);
      for (const cost::Work* part : {&work.forward, &work.backward, &work.recompute}) {
        for (const cost::Kernel& kernel : part->kernels) {
          if (kernel.kind == cost::KernelKind::product) on_product({kernel.batch, kernel.m, kernel.n, kernel.k, 1});
        }
        for (const cost::Message& message : part->messages) {
          if (group.size > 1 && message.bytes >= 1) {
            on_message({to_string(message.kind), group.size, per_node, std::round(message.bytes), 1});
          }
        }
      }
    }
  }

  static auto key(const spec::ProductRate& rate) { return std::make_tuple(rate.batch, rate.m, rate.n, rate.k); }
  static auto key(const spec::CollectiveRate& rate) {
    return std::make_tuple(rate.kind, rate.ranks, rate.per_node, static_cast<int64_t>(std::llround(rate.bytes)));
  }

  void list_shapes() {
    for (size_t i = 0; i < machine_.shapes.products.size(); ++i) products_[key(machine_.shapes.products[i])] = i;
    for (size_t i = 0; i < machine_.shapes.collectives.size(); ++i) {
      collectives_[key(machine_.shapes.collectives[i])] = i;
    }
    // Shapes start where the table they are added to says, so that adding them changes no prediction.
    const spec::ShapeRates known = machine_.shapes;
    for (const MeasuredRun* run : runs_) {
      visit(
          *run,
          [&](spec::ProductRate rate) {
            if (!products_.emplace(key(rate), machine_.shapes.products.size()).second) return;
            rate.factor = product_factor(known, rate.batch, rate.m, rate.n, rate.k);
            machine_.shapes.products.push_back(rate);
          },
          [&](spec::CollectiveRate rate) {
            if (!collectives_.emplace(key(rate), machine_.shapes.collectives.size()).second) return;
            machine_.shapes.collectives.push_back(rate);
          });
    }
  }

  void find_shapes(const MeasuredRun& run, UsedShapes& used) const {
    std::set<size_t> products, collectives;
    visit(
        run, [&](const spec::ProductRate& rate) { products.insert(products_.at(key(rate))); },
        [&](const spec::CollectiveRate& rate) { collectives.insert(collectives_.at(key(rate))); });
    used.products.assign(products.begin(), products.end());
    used.collectives.assign(collectives.begin(), collectives.end());
  }

  MatrixXd prior_covariance() const {
    const auto count = static_cast<Eigen::Index>(size());
    MatrixXd covariance = MatrixXd::Zero(count, count);
    for (size_t i = 0; i < kConstantCount; ++i) {
      covariance(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(i)) =
          kConstants[i].width * kConstants[i].width;
    }
    const double variance = options_.shape_width * options_.shape_width;
    const auto fill = [&](const auto& rates, size_t begin) {
      for (size_t i = 0; i < rates.size(); ++i) {
        for (size_t j = 0; j < rates.size(); ++j) {
          // Half of a shape's deviation is its own: the library's choice of an algorithm.
          const double shared = 0.5 * likeness(rates[i], rates[j]) + (i == j ? 0.5 : 0.0);
          covariance(static_cast<Eigen::Index>(begin + i), static_cast<Eigen::Index>(begin + j)) = variance * shared;
        }
      }
    };
    fill(machine_.shapes.products, kConstantCount);
    fill(machine_.shapes.collectives, kConstantCount + machine_.shapes.products.size());
    return covariance;
  }

  double log_seconds(const MeasuredRun& run, const spec::Machine& machine) const {
    const cost::Recipe recipe = recipe_of(run, machine);
    Evaluator evaluator(run.model, machine, recipe, run.compute);
    return std::log(evaluator.predict(cost::with_stages(run.strategy, run.model, recipe)).step_seconds);
  }

  // Residuals and their derivatives by what is fitted.
  void linearise(VectorXd& residuals, MatrixXd& jacobian) const {
    residuals.resize(static_cast<Eigen::Index>(runs_.size()));
    jacobian.setZero(static_cast<Eigen::Index>(runs_.size()), static_cast<Eigen::Index>(size()));
    const VectorXd u = current();
    spec::Machine changed = machine_;
    for (size_t row = 0; row < runs_.size(); ++row) {
      const MeasuredRun& run = *runs_[row];
      const double here = log_seconds(run, machine_);
      residuals(static_cast<Eigen::Index>(row)) = std::log(run.step_seconds) - here;
      const auto differentiate = [&](size_t index) {
        const auto at = static_cast<Eigen::Index>(index);
        // Towards zero where a bound is above: efficiencies end at 1.
        set(changed, index, u(at) - kDifference);
        jacobian(static_cast<Eigen::Index>(row), at) = (here - log_seconds(run, changed)) / kDifference;
        set(changed, index, u(at));
      };
      for (size_t i = 0; i < kConstantCount; ++i) differentiate(i);
      for (const size_t i : used_[row].products) differentiate(kConstantCount + i);
      for (const size_t i : used_[row].collectives) {
        differentiate(kConstantCount + machine_.shapes.products.size() + i);
      }
    }
  }

  // What is minimised: Huber's loss of the residuals and the distance from the prior.
  double objective(const spec::Machine& machine, const VectorXd& u) const {
    double sum = 0;
    for (const MeasuredRun* run : runs_) {
      const double far = std::fabs(std::log(run->step_seconds) - log_seconds(*run, machine)) / options_.noise;
      sum += far <= kHuber ? far * far : kHuber * (2 * far - kHuber);
    }
    const VectorXd moved = u - prior_;
    return sum + moved.dot(prior_solver_.solve(moved));
  }

  // Goes as far along the step as the objective falls: the formulas have kinks. False where it does not fall at all.
  bool move(const VectorXd& next) {
    const VectorXd here = current();
    const double before = objective(machine_, here);
    for (double part = 1; part > 1.0 / 100; part /= 2) {
      spec::Machine tried = machine_;
      const VectorXd u = here + part * (next - here);
      for (size_t i = 0; i < size(); ++i) set(tried, i, u(static_cast<Eigen::Index>(i)));
      if (objective(tried, u) >= before * (1 - 1e-6)) continue;
      machine_ = tried;
      return true;
    }
    return false;
  }

  // One step; false at the optimum. `variances`: the posterior's.
  bool advance(VectorXd& variances) {
    VectorXd residuals;
    MatrixXd jacobian;
    linearise(residuals, jacobian);
    const VectorXd u = current();
    const MatrixXd spread = covariance_ * jacobian.transpose();
    MatrixXd system = jacobian * spread;
    for (Eigen::Index row = 0; row < residuals.size(); ++row) {
      const double far = std::max(1.0, std::fabs(residuals(row)) / (kHuber * options_.noise));
      system(row, row) += options_.noise * options_.noise * far;
    }
    const Eigen::LLT<MatrixXd> solver(system);
    if (solver.info() != Eigen::Success) throw InternalError("calibration: the system is not positive definite");
    const MatrixXd explained = solver.matrixL().solve(spread.transpose());
    variances = covariance_.diagonal() - explained.colwise().squaredNorm().transpose();
    return move(prior_ + spread * solver.solve(residuals + jacobian * (u - prior_)));
  }

  CalibrationOptions options_;
  spec::Machine machine_;  // as fitted so far
  std::vector<const MeasuredRun*> runs_;
  std::vector<UsedShapes> used_;  // by run
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, size_t> products_;
  std::map<std::tuple<std::string, int64_t, int64_t, int64_t>, size_t> collectives_;
  VectorXd prior_;
  MatrixXd covariance_;
  Eigen::LDLT<MatrixXd> prior_solver_;
};

template <typename Rate>
std::string list(const char* key, const std::vector<Rate>& rates) {
  std::string text = fmt::format("{} = [", key);
  for (const Rate& rate : rates) {
    if (std::fabs(rate.factor - 1) >= 5e-4) text += fmt::format("\n  \"{}\",", spec::to_string(rate));
  }
  return text + (text.back() == ',' ? "\n]\n" : "]\n");
}

}  // namespace

Calibration calibrate(const std::vector<MeasuredRun>& runs, const spec::Machine& machine,
                      const CalibrationOptions& options) {
  return Fitting(runs, machine, options).run();
}

std::string machine_toml(const Calibration& calibration, const std::string& name, const std::string& base,
                         const std::string& stack_name) {
  std::string text =
      fmt::format("# Fitted by `ridgeline calibrate` to {} runs.\n[machine]\nname = \"{}\"\nbase = \"{}\"\n",
                  calibration.runs, name, base);
  text += fmt::format("\n[stack]\nname = \"{}\"\n", stack_name);
  for (const FittedConstant& constant : calibration.constants) {
    text += fmt::format("{} = {:.4g}\n", constant.name, constant.after);
  }
  const spec::ShapeRates& shapes = calibration.machine.shapes;
  if (shapes.products.empty() && shapes.collectives.empty()) return text;
  text += "\n[shapes]  # time over the formula's\n";
  return text + list("products", shapes.products) + list("collectives", shapes.collectives);
}

}  // namespace ridgeline::simulate
