#include "simulate/shape_factor.h"

#include <cmath>

#include "core/error.h"

namespace ridgeline::simulate {
namespace {

double squared_log_ratio(double a, double b) {
  const double difference = std::log(a / b);
  return difference * difference;
}

double squared_log_ratio(int64_t a, int64_t b) {
  return a == b ? 0 : squared_log_ratio(static_cast<double>(a), static_cast<double>(b));
}

double weight(double squared_distance) { return std::exp(-squared_distance / (2 * kShapeScale * kShapeScale)); }

bool is_same(const spec::ProductRate& a, const spec::ProductRate& b) {
  return a.batch == b.batch && a.m == b.m && a.n == b.n && a.k == b.k;
}

bool is_same(const spec::CollectiveRate& a, const spec::CollectiveRate& b) {
  // Bytes were rounded to whole ones when they were written.
  return a.kind == b.kind && a.ranks == b.ranks && a.per_node == b.per_node && std::fabs(a.bytes - b.bytes) < 1;
}

template <typename Rate>
double factor_of(const std::vector<Rate>& listed, const Rate& asked) {
  double sum = 0, weights = 1;
  for (const Rate& rate : listed) {
    if (is_same(rate, asked)) return rate.factor;
    const double w = likeness(rate, asked);
    sum += w * std::log(rate.factor);
    weights += w;
  }
  return std::exp(sum / weights);
}

}  // namespace

double likeness(const spec::ProductRate& a, const spec::ProductRate& b) {
  return weight(squared_log_ratio(a.batch, b.batch) + squared_log_ratio(a.m, b.m) + squared_log_ratio(a.n, b.n) +
                squared_log_ratio(a.k, b.k));
}

double likeness(const spec::CollectiveRate& a, const spec::CollectiveRate& b) {
  if (a.kind != b.kind) return 0;
  return weight(squared_log_ratio(a.ranks, b.ranks) + squared_log_ratio(a.per_node, b.per_node) +
                squared_log_ratio(a.bytes, b.bytes));
}

double product_factor(const spec::ShapeRates& rates, int64_t batch, int64_t m, int64_t n, int64_t k) {
  if (rates.products.empty()) return 1;
  return factor_of(rates.products, {batch, m, n, k, 1});
}

double collective_factor(const spec::ShapeRates& rates, cost::MessageKind kind, int64_t ranks, int64_t per_node,
                         double bytes) {
  if (rates.collectives.empty() || !(bytes >= 1)) return 1;
  return factor_of(rates.collectives, {to_string(kind), ranks, per_node, bytes, 1});
}

const char* to_string(cost::MessageKind kind) {
  switch (kind) {
    case cost::MessageKind::all_reduce:
      return "all_reduce";
    case cost::MessageKind::all_gather:
      return "all_gather";
    case cost::MessageKind::reduce_scatter:
      return "reduce_scatter";
    case cost::MessageKind::all_to_all:
      return "all_to_all";
    case cost::MessageKind::send:
      return "send";
    case cost::MessageKind::shift:
      return "shift";
  }
  throw InternalError("MessageKind {}", static_cast<int>(kind));
}

}  // namespace ridgeline::simulate
