#include "search/tune/points.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <sstream>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline::search {
namespace {

struct Known {
  const char* name;
  Scale scale;
  std::vector<std::string> labels;  // of values 0, 1, 2 ...; empty: the number itself
  int64_t (*number)(const Point&);
  bool derived;                        // follows from the others, so that it is no dimension
  std::optional<int64_t> unsaid = {};  // the value that a key leaves out: that of what most strategies do without
};

const std::vector<Known>& known_dimensions() {
  using S = Scale;
  static const std::vector<Known> all = {
      {"devices", S::logarithmic, {}, [](const Point& p) { return p.devices; }, false},
      {"tensor", S::logarithmic, {}, [](const Point& p) { return p.strategy.tensor; }, false},
      {"pipeline", S::logarithmic, {}, [](const Point& p) { return p.strategy.pipeline; }, false},
      {"virtual_pipeline", S::logarithmic, {}, [](const Point& p) { return p.strategy.virtual_pipeline; }, false},
      {"context", S::logarithmic, {}, [](const Point& p) { return p.strategy.context; }, false, 1},
      {"context_kind",
       S::unordered,
       {"ring", "all_to_all"},
       [](const Point& p) -> int64_t { return static_cast<int64_t>(p.strategy.context_kind); },
       false,
       0},
      {"expert", S::logarithmic, {}, [](const Point& p) { return p.strategy.expert; }, false, 1},
      {"expert_tensor",
       S::ordered,
       {"as_tensor", "1"},
       [](const Point& p) -> int64_t { return p.strategy.expert_tensor == 1 && p.strategy.tensor > 1 ? 1 : 0; },
       false,
       0},
      {"data", S::logarithmic, {}, [](const Point& p) { return p.strategy.data; }, true},
      {"micro_batch", S::logarithmic, {}, [](const Point& p) { return p.strategy.micro_batch; }, false},
      {"micro_batches", S::logarithmic, {}, [](const Point& p) { return p.strategy.micro_batches(); }, true},
      {"global_batch", S::logarithmic, {}, [](const Point& p) { return p.strategy.global_batch; }, false},
      {"zero_stage",
       S::ordered,
       {"0", "1", "2", "3"},
       [](const Point& p) -> int64_t { return p.strategy.zero_stage; },
       false},
      {"recompute",
       S::ordered,
       {"none", "selective", "full"},
       [](const Point& p) -> int64_t { return static_cast<int64_t>(p.strategy.recompute); },
       false},
      {"sequence_parallel",
       S::ordered,
       {"off", "on"},
       [](const Point& p) -> int64_t { return p.strategy.sequence_parallel ? 1 : 0; },
       false},
      {"schedule",
       S::unordered,
       {"1f1b", "gpipe", "zero_bubble", "zero_bubble_v"},
       [](const Point& p) -> int64_t {
         // In the order of the names.
         switch (p.strategy.schedule) {
           case spec::ScheduleKind::one_f_one_b:
             return 0;
           case spec::ScheduleKind::gpipe:
             return 1;
           case spec::ScheduleKind::zero_bubble:
             return 2;
           case spec::ScheduleKind::zero_bubble_v:
             return 3;
         }
         return 0;
       },
       false},
  };
  return all;
}

std::string label_of(const Known& known, int64_t value) {
  if (known.labels.empty()) return fmt::format("{}", value);
  return known.labels.at(value);
}

std::string key_of(const Point& point) {
  std::string key;
  for (const Known& known : known_dimensions()) {
    if (known.derived || known.number(point) == known.unsaid) continue;
    if (!key.empty()) key += ' ';
    key += fmt::format("{}={}", known.name, label_of(known, known.number(point)));
  }
  for (const auto& [name, text] : point.extra) key += fmt::format(" {}={}", name, text);
  return key;
}

std::optional<double> as_number(const std::string& text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Where all texts are numbers they are in their order, by ratio where they spread; else by name and unordered.
Dimension extra_dimension(const std::string& name, const std::set<std::string>& texts) {
  Dimension dimension{name, Scale::unordered, {}, {texts.begin(), texts.end()}};
  std::vector<double> numbers;
  for (const std::string& text : texts) {
    if (const auto number = as_number(text)) numbers.push_back(*number);
  }
  if (numbers.size() == texts.size()) {
    std::sort(dimension.labels.begin(), dimension.labels.end(),
              [](const auto& a, const auto& b) { return *as_number(a) < *as_number(b); });
    const double least = *std::min_element(numbers.begin(), numbers.end());
    const double most = *std::max_element(numbers.begin(), numbers.end());
    dimension.scale = least > 0 && most >= 4 * least ? Scale::logarithmic : Scale::ordered;
  }
  for (size_t i = 0; i < dimension.labels.size(); ++i) {
    const bool by_ratio = dimension.scale == Scale::logarithmic;
    dimension.values.push_back(by_ratio ? *as_number(dimension.labels[i]) : static_cast<double>(i));
  }
  return dimension;
}

void require_few_levels(const Dimension& dimension) {
  if (dimension.values.size() > std::numeric_limits<uint16_t>::max()) {
    throw InputError("'{}' takes {} values over the points of the study: expected at most {}; constrain it",
                     dimension.name, dimension.values.size(), std::numeric_limits<uint16_t>::max());
  }
}

}  // namespace

std::map<std::string, int64_t> numbers_of(const Point& point) {
  std::map<std::string, int64_t> numbers;
  for (const Known& known : known_dimensions()) numbers[known.name] = known.number(point);
  return numbers;
}

std::map<std::string, double> numbers_of_key(const std::string& key) {
  std::map<std::string, double> numbers;
  for (const Known& known : known_dimensions()) {
    if (known.unsaid) numbers[known.name] = static_cast<double>(*known.unsaid);
  }
  std::istringstream words(key);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = word.substr(0, equals), label = word.substr(equals + 1);
    std::optional<double> number = as_number(label);
    for (const Known& known : known_dimensions()) {
      const auto found = std::find(known.labels.begin(), known.labels.end(), label);
      if (known.name == name && found != known.labels.end()) number = found - known.labels.begin();
    }
    if (number) numbers[name] = *number;
  }
  const auto product = [&](std::initializer_list<const char*> names) {
    double result = 1;
    for (const char* name : names) result *= numbers.count(name) > 0 ? numbers.at(name) : 0;
    return result;
  };
  if (const double ranks = product({"tensor", "pipeline", "context"}); ranks > 0)
    numbers["data"] = product({"devices"}) / ranks;
  if (const double samples = product({"data", "micro_batch"}); samples > 0) {
    numbers["micro_batches"] = product({"global_batch"}) / samples;
  }
  return numbers;
}

PointSet::PointSet(std::vector<Point> points) : points_(std::move(points)) {
  std::set<std::string> extra;
  for (size_t i = 0; i < points_.size(); ++i) {
    keys_.push_back(key_of(points_[i]));
    if (!by_key_.emplace(keys_.back(), i).second) {
      throw InputError("a point stands twice in the study: {}; remove one of the two", keys_.back());
    }
    for (const auto& entry : points_[i].extra) extra.insert(entry.first);
  }
  std::map<std::string, std::set<int64_t>> values_of;
  for (const Known& known : known_dimensions()) {
    for (const Point& point : points_) values_of[known.name].insert(known.number(point));
  }
  // Of the two that follow from each other the one that was chosen takes fewer values.
  const bool accumulates = values_of["micro_batches"].size() < values_of["global_batch"].size();
  std::vector<std::vector<uint16_t>> columns;
  for (const Known& known : known_dimensions()) {
    const std::string name = known.name;
    const bool follows = name == "global_batch" ? accumulates : name == "micro_batches" ? !accumulates : known.derived;
    const std::set<int64_t>& values = values_of[name];
    if (follows || values.size() < 2) continue;
    Dimension dimension{known.name, known.scale, {values.begin(), values.end()}, {}};
    require_few_levels(dimension);
    for (const int64_t value : values) dimension.labels.push_back(label_of(known, value));
    std::vector<uint16_t>& column = columns.emplace_back();
    for (const Point& point : points_) {
      column.push_back(static_cast<uint16_t>(std::distance(values.begin(), values.find(known.number(point)))));
    }
    dimensions_.push_back(std::move(dimension));
  }
  for (const std::string& name : extra) {
    const auto text_of = [&](const Point& point) {
      const auto found = point.extra.find(name);
      return found == point.extra.end() ? std::string() : found->second;
    };
    std::set<std::string> texts;
    for (const Point& point : points_) texts.insert(text_of(point));
    if (texts.size() < 2) continue;
    Dimension dimension = extra_dimension(name, texts);
    require_few_levels(dimension);
    std::map<std::string, uint16_t> level_of;
    for (size_t i = 0; i < dimension.labels.size(); ++i) level_of[dimension.labels[i]] = static_cast<uint16_t>(i);
    std::vector<uint16_t>& column = columns.emplace_back();
    for (const Point& point : points_) column.push_back(level_of.at(text_of(point)));
    dimensions_.push_back(std::move(dimension));
  }
  levels_.resize(points_.size() * columns.size());
  for (size_t d = 0; d < columns.size(); ++d) {
    for (size_t i = 0; i < points_.size(); ++i) levels_[i * columns.size() + d] = columns[d][i];
  }
}

std::optional<size_t> PointSet::find(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? std::nullopt : std::optional<size_t>(found->second);
}

double PointSet::coordinate(size_t dimension, size_t level) const {
  const double value = dimensions_[dimension].values[level];
  return dimensions_[dimension].scale == Scale::logarithmic ? std::log2(value) : value;
}

std::vector<double> PointSet::coordinates(size_t point) const {
  std::vector<double> result;
  for (size_t d = 0; d < dimensions_.size(); ++d) result.push_back(coordinate(d, level(point, d)));
  return result;
}

}  // namespace ridgeline::search
