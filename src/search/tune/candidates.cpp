#include "search/tune/candidates.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"

namespace ridgeline::search {
namespace {

constexpr size_t kPredicted = 4096;
constexpr size_t kNeighbours = 2048;
constexpr double kMostOverLimit = 1.5;  // predicted peaks are off by this much at most, as a rule

uint64_t draw(uint64_t key, size_t point) {
  const PhiloxBlock block = philox4x32({static_cast<uint32_t>(point), static_cast<uint32_t>(point >> 32), 0, 0}, key);
  return static_cast<uint64_t>(block[0]) << 32 | block[1];
}

double predicted_cost(const Guess& guess) {
  double sum = 0;
  for (const double cost : guess.costs) sum += std::log(cost);
  return sum;
}

// The `most` first by `key`, of those that are not yet chosen.
template <typename Key>
void choose_first(std::vector<size_t> pool, std::vector<bool>& chosen, size_t most, Key key) {
  std::erase_if(pool, [&](size_t point) { return chosen[point]; });
  std::vector<std::pair<decltype(key(size_t{})), size_t>> keyed;
  for (const size_t point : pool) keyed.emplace_back(key(point), point);
  most = std::min(most, keyed.size());
  std::nth_element(keyed.begin(), keyed.begin() + static_cast<ptrdiff_t>(most), keyed.end());
  for (size_t i = 0; i < most; ++i) chosen[keyed[i].second] = true;
}

size_t differences(const PointSet& points, size_t left, size_t right) {
  size_t count = 0;
  for (size_t d = 0; d < points.dimensions().size(); ++d) count += points.level(left, d) != points.level(right, d);
  return count;
}

void choose_neighbours(const PointSet& points, const std::vector<size_t>& best, std::vector<bool>& chosen) {
  size_t left = kNeighbours;
  for (const size_t centre : best) {
    for (size_t i = 0; i < points.size() && left > 0; ++i) {
      if (chosen[i] || differences(points, centre, i) > 1) continue;
      chosen[i] = true;
      --left;
    }
  }
}

}  // namespace

std::vector<size_t> choose_candidates(const PointSet& points, const std::vector<Guess>& guesses,
                                      const SearchOptions& options, const std::vector<size_t>& best) {
  std::vector<size_t> all(points.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (points.size() <= kMostCandidates) return all;
  std::vector<bool> chosen(points.size(), false);
  choose_neighbours(points, best, chosen);
  if (!guesses.empty()) {
    std::vector<size_t> plausible;
    for (const size_t i : all) {
      const bool fits = options.limit_bytes == 0 || guesses[i].peak_bytes <= kMostOverLimit * options.limit_bytes;
      if (fits && !guesses[i].costs.empty()) plausible.push_back(i);
    }
    choose_first(plausible, chosen, kPredicted, [&](size_t i) { return predicted_cost(guesses[i]); });
  }
  const size_t taken = static_cast<size_t>(std::count(chosen.begin(), chosen.end(), true));
  const uint64_t key = random_key(options.seed, "tune candidates");
  choose_first(all, chosen, kMostCandidates - std::min(taken, kMostCandidates), [&](size_t i) { return draw(key, i); });
  std::vector<size_t> result;
  for (const size_t i : all) {
    if (chosen[i]) result.push_back(i);
  }
  return result;
}

}  // namespace ridgeline::search
