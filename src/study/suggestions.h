// Which point a tuner tries next: as a search says, or one after the other.
//
// What ask() returns is a function of what was told and is pending alone; see search/tune/searcher.h for the contract.
#pragma once

#include <set>
#include <vector>

#include "search/tune/searcher.h"

namespace ridgeline::study {

class Suggestions {
 public:
  virtual ~Suggestions() = default;
  virtual std::optional<size_t> ask() = 0;
  virtual void tell(const search::Trial& trial) = 0;
  virtual void mark_pending(size_t point) = 0;
};

class Searched : public Suggestions {
 public:
  explicit Searched(search::Searcher searcher) : searcher_(std::move(searcher)) {}
  std::optional<size_t> ask() override { return searcher_.ask(); }
  void tell(const search::Trial& trial) override { searcher_.tell(trial); }
  void mark_pending(size_t point) override { searcher_.mark_pending(point); }

 private:
  search::Searcher searcher_;
};

// Each of so many points once, in their order.
class InOrder : public Suggestions {
 public:
  explicit InOrder(size_t points) : points_(points) {}
  std::optional<size_t> ask() override {
    for (size_t point = 0; point < points_; ++point) {
      if (asked_.insert(point).second) return point;
    }
    return std::nullopt;
  }
  void tell(const search::Trial& trial) override { asked_.insert(trial.point); }
  void mark_pending(size_t point) override { asked_.insert(point); }

 private:
  size_t points_;
  std::set<size_t> asked_;
};

}  // namespace ridgeline::study
