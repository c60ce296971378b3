// RunHistory: the curves of a run of any length, in memory that does not grow with it.
//
//   RunHistory history(1000);
//   while (const auto step = reader.next()) history.add(*step);
//   nlohmann::json curves = history.to_json();
//
// Steps are gathered in rows of as many steps each (a power of two; the last may hold fewer), so that there are between
// `most_rows` / 2 and `most_rows` once there were more steps than rows. Of each quantity a row keeps the mean, the
// lowest and the highest, so that no spike is lost. In JSON a quantity is
//   {"mean": [...], "low": [...], "high": [...]}   low and high left out where every row is one step
// with null where a row has no finite value; beside them stand "step" and "tokens" (at a row's end), "seconds" (of
// steps since the start), "steps" (of a row), "skipped" and "not_finite" (how many losses were no number).
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "report/metrics.h"

namespace ridgeline::report {

class RunHistory {
 public:
  explicit RunHistory(size_t most_rows);  // 2 or more

  // Steps in rising order; throws InputError naming both where they are not.
  void add(const StepMetrics& step);
  nlohmann::json to_json() const;

  static constexpr size_t kQuantities = 10;

 private:
  struct Spread {
    double sum = 0, low = 0, high = 0;
    int64_t count = 0;
    void add(const Spread& other);
  };
  struct Row {
    int64_t step = 0, tokens = 0, steps = 0;
    double seconds = 0;
    std::array<Spread, kQuantities> quantities;
    void add(const Row& later);
  };
  void merge_pairs();

  size_t most_rows_;
  int64_t steps_per_row_ = 1;
  double seconds_ = 0;
  int64_t skipped_ = 0, not_finite_ = 0;
  std::vector<Row> rows_;
};

}  // namespace ridgeline::report
