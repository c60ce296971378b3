#include "search/best.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <tuple>

#include "core/error.h"

namespace ridgeline::search {
namespace {

using simulate::Fit;
using simulate::Prediction;

constexpr size_t kMostNearest = 5;

// A total order, so that threads cannot change the outcome.
auto strategy_key(const spec::Strategy& s) {
  return std::make_tuple(s.tensor, s.pipeline, s.micro_batch, s.virtual_pipeline, static_cast<int>(s.recompute),
                         static_cast<int>(s.schedule), !s.sequence_parallel, -s.zero_stage, s.context,
                         static_cast<int>(s.context_kind), s.expert, s.expert_tensor);
}

bool is_better(const Prediction& a, const Prediction& b) {
  if (a.fit != b.fit) return a.fit < b.fit;
  if (a.step_seconds != b.step_seconds) return a.step_seconds < b.step_seconds;
  if (a.memory.total() != b.memory.total()) return a.memory.total() < b.memory.total();
  return strategy_key(a.strategy) < strategy_key(b.strategy);
}

bool is_nearer(const Miss& a, const Miss& b) {
  if (a.missing_bytes != b.missing_bytes) return a.missing_bytes < b.missing_bytes;
  return strategy_key(a.prediction.strategy) < strategy_key(b.prediction.strategy);
}

// Keeps the first `most` by an order.
template <typename Item, typename Order>
void keep_first(std::vector<Item>& items, Item item, size_t most, Order order) {
  if (items.size() == most && !order(item, items.back())) return;
  items.insert(std::upper_bound(items.begin(), items.end(), item, order), std::move(item));
  if (items.size() > most) items.pop_back();
}

class Ranker {
 public:
  Ranker(simulate::Evaluator evaluator, size_t keep) : evaluator_(std::move(evaluator)), keep_(keep) {}

  void visit(const spec::Strategy& strategy) {
    ++ranking_.considered;
    const simulate::StageMemory memory = evaluator_.fullest(strategy);
    const Fit fit = evaluator_.memory().fit(memory);
    if (fit == Fit::does_not_fit) {
      miss(strategy, memory);
      return;
    }
    ++ranking_.fitting;
    keep_first(ranking_.best, evaluator_.predict(strategy), keep_, is_better);
  }

  void merge(const Ranker& other) {
    ranking_.considered += other.ranking_.considered;
    ranking_.fitting += other.ranking_.fitting;
    for (const Prediction& prediction : other.ranking_.best) {
      keep_first(ranking_.best, prediction, keep_, is_better);
    }
    for (const Miss& miss : other.ranking_.nearest) keep_first(ranking_.nearest, miss, kMostNearest, is_nearer);
  }

  Ranking finish() {
    if (!ranking_.best.empty()) ranking_.nearest.clear();
    for (Miss& miss : ranking_.nearest) miss.prediction = evaluator_.predict(miss.prediction.strategy);
    return std::move(ranking_);
  }

 private:
  void miss(const spec::Strategy& strategy, const simulate::StageMemory& memory) {
    if (ranking_.fitting > 0) return;
    const double room = evaluator_.machine().device.memory_gib * 1024.0 * 1024.0 * 1024.0;
    Miss miss;
    miss.prediction.strategy = strategy;
    miss.missing_bytes = memory.low - room;
    keep_first(ranking_.nearest, std::move(miss), kMostNearest, is_nearer);
  }

  simulate::Evaluator evaluator_;
  size_t keep_;
  Ranking ranking_;
};

}  // namespace

Ranking rank(const simulate::Evaluator& evaluator, const Space& space, size_t keep, int threads) {
  RIDGELINE_ASSERT(keep > 0);
  const std::vector<Cut> all = cuts(space, evaluator.model());
  if (threads <= 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  threads = std::min<int>(threads, static_cast<int>(std::max<size_t>(1, all.size())));
  std::vector<Ranker> rankers(threads, Ranker(evaluator, keep));
  std::vector<std::exception_ptr> faults(threads);
  std::atomic<size_t> next = 0;
  const auto work = [&](int thread) {
    try {
      for (size_t i = next++; i < all.size(); i = next++) {
        for_each_plan(space, evaluator.model(), all[i],
                      [&](const spec::Strategy& strategy) { rankers[thread].visit(strategy); });
      }
    } catch (...) {
      faults[thread] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> crew;
    for (int thread = 1; thread < threads; ++thread) crew.emplace_back(work, thread);
    work(0);
  }
  for (const std::exception_ptr& fault : faults) {
    if (fault) std::rethrow_exception(fault);
  }
  for (int thread = 1; thread < threads; ++thread) rankers[0].merge(rankers[thread]);
  return rankers[0].finish();
}

}  // namespace ridgeline::search
