#include "simulate/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "simulate/evaluator.h"
#include "simulate/shape_factor.h"
#include "simulate/validation.h"
#include "source_folder.h"

namespace ridgeline::simulate {
namespace {

// Runs as a machine with other constants would take them.
class Calibrating : public testing::Test {
 protected:
  Calibrating() {
    truth_.stack.product_efficiency *= 0.8;
    truth_.stack.node_efficiency *= 0.7;
    record();
  }

  // The runs as `truth_` takes them.
  void record() {
    runs_.clear();
    for (const int64_t hidden : {1024, 2048}) {
      for (const int64_t tensor : {1, 2, 4, 8}) {
        for (const int64_t micro_batch : {1, 2, 4, 8}) runs_.push_back(run(hidden, tensor, micro_batch));
      }
    }
  }

  MeasuredRun run(int64_t hidden, int64_t tensor, int64_t micro_batch) const {
    MeasuredRun run;
    run.source = "made";
    run.model.layers = 24;
    run.model.hidden = hidden;
    run.model.heads = 16;
    run.model.sequence = 1024;
    run.model.vocabulary = 51200;
    run.strategy.tensor = tensor;
    run.strategy.micro_batch = micro_batch;
    run.strategy.global_batch = 64;
    run.devices = 8;
    run.compute = spec::Precision::fp16;
    spec::derive_data(run.strategy, run.model, run.devices);
    Evaluator evaluator(run.model, truth_, recipe_of(run, truth_), run.compute);
    run.step_seconds = evaluator.predict(run.strategy).step_seconds;
    return run;
  }

  double error(const spec::Machine& machine) const {
    return accuracies(validate_runs(runs_, machine)).back().mean_absolute_error;
  }

  static const FittedConstant& constant(const Calibration& fit, const std::string& name) {
    for (const FittedConstant& constant : fit.constants) {
      if (constant.name == name) return constant;
    }
    throw std::runtime_error(name);
  }

  spec::Machine machine_ = spec::load_machine(RIDGELINE_SOURCE_DIR "/machines/selene.toml");
  spec::Machine truth_ = machine_;
  std::vector<MeasuredRun> runs_;
};

TEST_F(Calibrating, RecoversWhatTheRunsTell) {
  const Calibration fit = calibrate(runs_, machine_, {.fits_shapes = false, .noise = 0.005});
  EXPECT_GT(error(machine_), 0.08);
  EXPECT_LT(error(fit.machine), 0.01);
  for (const auto& [name, value] : {std::pair{"node_efficiency", truth_.stack.node_efficiency},
                                    std::pair{"product_efficiency", truth_.stack.product_efficiency}}) {
    EXPECT_NEAR(constant(fit, name).after / value, 1.0, 0.1) << name;
    EXPECT_GT(constant(fit, name).determined, 0.5) << name;
  }
}

TEST_F(Calibrating, AnOddShapeStandsOutAmongThoseNearIt) {
  truth_ = machine_;
  truth_.shapes.products.push_back({1, 4096, 2048, 1024, 1.6});
  record();
  const Calibration fit = calibrate(runs_, machine_, {.noise = 0.005});
  EXPECT_LT(error(fit.machine), error(machine_));
  const spec::ShapeRates& shapes = fit.machine.shapes;
  const double odd = product_factor(shapes, 1, 4096, 2048, 1024);
  EXPECT_GT(odd, 1.1);
  for (const auto& [m, n] : {std::pair{4096, 1024}, std::pair{2048, 2048}, std::pair{8192, 2048}}) {
    EXPECT_GT(odd, product_factor(shapes, 1, m, n, 1024) + 0.05) << m << " x " << n;
  }
}

TEST_F(Calibrating, SaysWhatItCouldNotDetermine) {
  const Calibration fit = calibrate(runs_, machine_);
  // All runs are on one node and have one stage: nothing tells of the network, of messages or of fused attention.
  for (const char* name : {"network_efficiency", "message_efficiency", "network_latency_us", "attention_efficiency"}) {
    EXPECT_LT(constant(fit, name).determined, 0.01) << name;
    EXPECT_DOUBLE_EQ(constant(fit, name).after, constant(fit, name).before) << name;
  }
}

TEST_F(Calibrating, TheFileSaysWhatTheFitSays) {
  const Calibration fit = calibrate(runs_, machine_);
  const spec::Machine read = spec::parse_machine(
      machine_toml(fit, "fitted", RIDGELINE_SOURCE_DIR "/machines/selene.toml", "a stack"), "fitted.toml");
  EXPECT_EQ(read.name, "fitted");
  EXPECT_NEAR(error(read), error(fit.machine), 1e-3);
}

TEST_F(Calibrating, TooFewRunsAreRefused) {
  runs_.resize(2);
  EXPECT_THROW(calibrate(runs_, machine_), InputError);
}

TEST(ShapeFactor, FarFromAllThatIsListedTheFormulasHold) {
  spec::ShapeRates rates;
  rates.products.push_back({1, 4096, 4096, 4096, 2.0});
  EXPECT_DOUBLE_EQ(product_factor(rates, 1, 4096, 4096, 4096), 2.0);
  const double near = product_factor(rates, 1, 4096, 4096, 5000);
  EXPECT_GT(near, 1.2);
  EXPECT_LT(near, 2.0);
  EXPECT_NEAR(product_factor(rates, 1, 128, 128, 64), 1.0, 1e-6);
}

}  // namespace
}  // namespace ridgeline::simulate
