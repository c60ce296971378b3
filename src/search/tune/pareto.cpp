#include "search/tune/pareto.h"

#include <algorithm>

namespace ridgeline::search {
namespace {

bool is_no_higher(const std::vector<double>& left, const std::vector<double>& right) {
  for (size_t k = 0; k < left.size(); ++k) {
    if (left[k] > right[k]) return false;
  }
  return true;
}

}  // namespace

std::vector<size_t> pareto_front(const std::vector<Trial>& trials) {
  std::vector<size_t> order;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].outcome == Outcome::ok) order.push_back(i);
  }
  // Whoever beats a trial comes before it in the order of costs, one after the other.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return trials[a].costs < trials[b].costs; });
  std::vector<size_t> front;
  for (const size_t i : order) {
    const bool is_beaten = std::any_of(
        front.begin(), front.end(), [&](size_t better) { return is_no_higher(trials[better].costs, trials[i].costs); });
    if (!is_beaten) front.push_back(i);
  }
  return front;
}

}  // namespace ridgeline::search
