// The points of a study: every strategy that it may try, as rows of a finite list, with the dimensions that tell them
// apart as numbers for a surrogate.
//
// A point is known by its place in the list, which is the same whenever the same study is enumerated, and by its key
// ("tensor=8 pipeline=4 ..."), which also survives changes of the study: a store should keep the key. A dimension is
// something in which points differ; what all points share is no dimension, and neither is what follows from others:
// `data`, and of `global_batch` and `micro_batches` (of a replica) the one that takes more values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "spec/strategy.h"

namespace ridgeline::search {

// How far two values of a dimension are apart.
enum class Scale {
  logarithmic,  // degrees and sizes: by their ratio
  ordered,      // by their place in a row: recompute none, selective, full
  unordered,    // equal or not
};

struct Dimension {
  std::string name;  // "tensor", "micro_batch" ..., or a further column of a replayed table
  Scale scale = Scale::logarithmic;
  std::vector<double> values;       // that occur, ascending; places 0, 1, 2 ... where named
  std::vector<std::string> labels;  // one a value, for people: "8", "selective", "on"
};

struct Point {
  spec::Strategy strategy;  // with `data` derived
  int64_t devices = 1;
  std::map<std::string, std::string> extra = {};  // of a replayed table: what no Strategy says
};

class PointSet {
 public:
  // Throws InputError where two points are the same (the text names it).
  explicit PointSet(std::vector<Point> points);

  size_t size() const { return points_.size(); }
  const Point& at(size_t point) const { return points_.at(point); }
  const std::string& key(size_t point) const { return keys_.at(point); }
  std::optional<size_t> find(const std::string& key) const;

  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  // Which value of `dimension` the point has: an index of Dimension::values.
  size_t level(size_t point, size_t dimension) const { return levels_[point * dimensions_.size() + dimension]; }
  const std::string& label(size_t point, size_t dimension) const {
    return dimensions_[dimension].labels[level(point, dimension)];
  }
  // Coordinates for a surrogate: log2 of the value, or its place.
  double coordinate(size_t dimension, size_t level) const;
  std::vector<double> coordinates(size_t point) const;

 private:
  std::vector<Point> points_;
  std::vector<std::string> keys_;
  std::unordered_map<std::string, size_t> by_key_;
  std::vector<Dimension> dimensions_;
  std::vector<uint16_t> levels_;  // [point, dimension]
};

// Every number and name of a point that may be a dimension, by name: "devices", "tensor", "pipeline",
// "virtual_pipeline", "context", "context_kind" (0 ring, 1 all_to_all), "expert", "expert_tensor" (0 as tensor, 1 whole),
// "data", "micro_batch", "global_batch", "micro_batches", "zero_stage" (3: parameters too),
// "recompute" (0 none, 1 selective, 2 full), "sequence_parallel" (0, 1), "schedule" (0 1f1b, 1 gpipe).
std::map<std::string, int64_t> numbers_of(const Point& point);

// The same of a point's key alone, also of a study that is gone; further columns whose values are no numbers are left out.
std::map<std::string, double> numbers_of_key(const std::string& key);

}  // namespace ridgeline::search
