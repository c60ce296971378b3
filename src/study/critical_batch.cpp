#include "study/critical_batch.h"

#include <cmath>

#include "spec/parameters.h"

namespace ridgeline::study {
namespace {

constexpr double kTokensAtOne = 2e8;  // B_crit at a loss of one nat
constexpr double kBatchExponent = 0.21;
constexpr double kSizeConstant = 8.8e13;
constexpr double kSizeExponent = 0.076;
constexpr double kEarlyLoss = 3;

double tokens_at(double loss) { return kTokensAtOne / std::pow(loss, 1 / kBatchExponent); }

}  // namespace

CriticalBatch critical_batch(const spec::ModelSpec& model, double measured) {
  if (measured > 0) return {.tokens = measured, .is_measured = true};
  const double loss = std::pow(kSizeConstant / static_cast<double>(spec::parameter_count(model)), kSizeExponent);
  return {.tokens = tokens_at(loss), .early_tokens = tokens_at(kEarlyLoss), .loss = loss};
}

}  // namespace ridgeline::study
