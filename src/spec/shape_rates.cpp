#include "spec/shape_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/error.h"

namespace ridgeline::spec {
namespace {

constexpr double kLeastFactor = 0.01, kMostFactor = 100;
constexpr int64_t kMostSize = 1'000'000'000'000;
constexpr std::array kKinds = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"};

bool is_size(int64_t value) { return value >= 1 && value <= kMostSize; }
bool is_factor(double value) { return value >= kLeastFactor && value <= kMostFactor; }

}  // namespace

ProductRate parse_product_rate(const std::string& text) {
  ProductRate rate;
  int end = -1;
  long long batch = 0, m = 0, n = 0, k = 0;
  std::sscanf(text.c_str(), "%lld x %lld x %lld x %lld: %lf%n", &batch, &m, &n, &k, &rate.factor, &end);
  if (end != static_cast<int>(text.size()) || !is_size(batch) || !is_size(m) || !is_size(n) || !is_size(k) ||
      !is_factor(rate.factor)) {
    throw InputError(
        "'{}' is no rate of a product: expected \"BATCH x M x N x K: FACTOR\" with sizes of 1 to 1e12 and a factor of "
        "{} to {}",
        text, kLeastFactor, kMostFactor);
  }
  rate.batch = batch, rate.m = m, rate.n = n, rate.k = k;
  return rate;
}

CollectiveRate parse_collective_rate(const std::string& text) {
  CollectiveRate rate;
  char kind[32] = "";
  int end = -1;
  long long ranks = 0, per_node = 0;
  std::sscanf(text.c_str(), "%31s %lld (%lld a node) %lf: %lf%n", kind, &ranks, &per_node, &rate.bytes, &rate.factor,
              &end);
  rate.kind = kind;
  const bool is_known = std::find(kKinds.begin(), kKinds.end(), rate.kind) != kKinds.end();
  if (end != static_cast<int>(text.size()) || !is_known || !is_size(ranks) || !is_size(per_node) ||
      !(rate.bytes >= 1 && rate.bytes <= 1e18) || !is_factor(rate.factor)) {
    throw InputError(
        "'{}' is no rate of a collective: expected \"KIND RANKS (RANKS a node) BYTES: FACTOR\" with a kind of {}, and "
        "a "
        "factor of {} to {}",
        text, fmt::join(kKinds, ", "), kLeastFactor, kMostFactor);
  }
  rate.ranks = ranks, rate.per_node = per_node;
  return rate;
}

std::string to_string(const ProductRate& rate) {
  return fmt::format("{} x {} x {} x {}: {:.4g}", rate.batch, rate.m, rate.n, rate.k, rate.factor);
}

std::string to_string(const CollectiveRate& rate) {
  return fmt::format("{} {} ({} a node) {:.0f}: {:.4g}", rate.kind, rate.ranks, rate.per_node, rate.bytes, rate.factor);
}

}  // namespace ridgeline::spec
