#include "search/tune/space_description.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "search/space.h"
#include "search/tune/constraint.h"

namespace ridgeline::search {
namespace {

using spec::Recompute;

bool allows(const std::vector<int64_t>& values, int64_t value) {
  return values.empty() || std::find(values.begin(), values.end(), value) != values.end();
}

int64_t largest(const std::vector<int64_t>& values, int64_t otherwise) {
  return values.empty() ? otherwise : *std::max_element(values.begin(), values.end());
}

// Which of `names` a comma-separated text holds; all for an empty one.
std::vector<bool> chosen(const std::string& key, const std::string& text, const std::vector<std::string>& names) {
  if (text.find_first_not_of(" \t") == std::string::npos) return std::vector<bool>(names.size(), true);
  std::vector<bool> result(names.size(), false);
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    std::string word = text.substr(at, comma - at);
    at = comma + 1;
    const size_t first = word.find_first_not_of(" \t");
    word = first == std::string::npos ? "" : word.substr(first, word.find_last_not_of(" \t") + 1 - first);
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) {
      throw InputError("space.{} = '{}': '{}' is none of {}{}", key, text, word, join(names),
                       did_you_mean(word, names));
    }
    result[found - names.begin()] = true;
  }
  return result;
}

class Enumerator {
 public:
  Enumerator(const SpaceDescription& description, const spec::ModelSpec& model, const StudySize& size)
      : description_(with_preset(description)),
        model_(model),
        size_(size),
        recompute_(chosen("recompute", description_.recompute, {"none", "selective", "full"})),
        sequence_parallel_(chosen("sequence_parallel", description_.sequence_parallel, {"off", "on"})),
        context_kind_(chosen("context_kind", description_.context_kind, {"ring", "all_to_all"})),
        schedule_(chosen("schedule", description_.schedule, {"gpipe", "1f1b", "zero_bubble", "zero_bubble_v"})),
        constraint_(description_.constraints, names()) {}

  PointSet enumerate() {
    for (const int64_t devices : description_.devices.empty() ? std::vector{size_.devices} : description_.devices) {
      // The batch of a cut may follow from the cut: `devices` samples divide by every data axis.
      for (const Cut& cut : cuts(space(devices, devices), model_)) {
        if (is_wanted(cut)) add_cut(devices, cut);
      }
    }
    if (points_.empty()) throw InputError("[space] holds no legal strategy of this model{}", hint());
    return PointSet(std::move(points_));
  }

 private:
  static std::vector<std::string> names() {
    std::vector<std::string> names = {"nodes"};
    for (const auto& entry : numbers_of(Point{.strategy = {.data = 1}})) {
      names.push_back(entry.first);
    }
    return names;
  }

  Space space(int64_t devices, int64_t global_batch) const {
    Space space{.devices = devices, .global_batch = global_batch};
    space.most_tensor = largest(description_.tensor, space.most_tensor);
    space.most_micro_batch = largest(description_.micro_batch, space.most_micro_batch);
    space.most_context = largest(description_.context, devices);
    space.most_chunks = largest(description_.virtual_pipeline, space.most_chunks);
    return space;
  }

  void add_cut(int64_t devices, const Cut& cut) {
    if (description_.micro_batches.empty()) {
      for (const int64_t batch :
           description_.global_batch.empty() ? std::vector{size_.global_batch} : description_.global_batch) {
        if (batch % cut.data == 0) add_plans(devices, cut, batch, 0);
      }
      return;
    }
    for (const int64_t count : description_.micro_batches) {
      for (const int64_t micro_batch : micro_batches_to_try()) {
        const int64_t batch = count * cut.data * micro_batch;
        if (allows(description_.global_batch, batch)) add_plans(devices, cut, batch, micro_batch);
      }
    }
  }

  std::vector<int64_t> micro_batches_to_try() const {
    if (!description_.micro_batch.empty()) return description_.micro_batch;
    std::vector<int64_t> result;
    for (int64_t size = 1; size <= Space().most_micro_batch; size *= 2) result.push_back(size);
    return result;
  }

  void add_plans(int64_t devices, const Cut& cut, int64_t global_batch, int64_t micro_batch) {
    for_each_plan(space(devices, global_batch), model_, cut, [&](const spec::Strategy& strategy) {
      if (micro_batch > 0 && strategy.micro_batch != micro_batch) return;
      const Point point{strategy, devices};
      if (!is_wanted(point)) return;
      if (points_.size() == kMostPoints) {
        throw InputError("[space] holds over {} strategies; narrow it by lists of values or space.constraints",
                         kMostPoints);
      }
      points_.push_back(point);
    });
  }

  bool is_wanted(const Cut& cut) const {
    // One rank to a sequence is the same in every kind.
    if (cut.context > 1 && !context_kind_[static_cast<size_t>(cut.context_kind)]) return false;
    return allows(description_.tensor, cut.tensor) && allows(description_.pipeline, cut.pipeline) &&
           allows(description_.context, cut.context);
  }

  bool is_wanted(const Point& point) const {
    const spec::Strategy& strategy = point.strategy;
    if (model_.experts > 0 && !allows(description_.expert, strategy.expert)) return false;
    if (model_.experts > 0 && strategy.tensor > 1 && !allows(description_.expert_tensor, strategy.expert_tensor)) {
      return false;
    }
    if (!allows(description_.micro_batch, strategy.micro_batch)) return false;
    if (!strategy.is_vee() && !allows(description_.virtual_pipeline, strategy.virtual_pipeline)) return false;
    // Without copies there is nothing to shard, and stages of 0 and 1 are the same run.
    if (strategy.copies() > 1 && !allows(description_.zero_stage, strategy.zero_stage)) return false;
    if (!recompute_[static_cast<size_t>(strategy.recompute)]) return false;
    // So is a cut sequence without a tensor axis, and any schedule without stages.
    if (strategy.tensor > 1 && !sequence_parallel_[strategy.sequence_parallel ? 1 : 0]) return false;
    if (strategy.pipeline > 1 && !schedule_[static_cast<size_t>(strategy.schedule)]) return false;
    std::map<std::string, int64_t> numbers = numbers_of(point);
    numbers["nodes"] = (point.devices + size_.devices_per_node - 1) / size_.devices_per_node;
    return constraint_.holds(numbers);
  }

  std::string hint() const {
    return fmt::format(
        " ({} layers, {} heads, {} devices, global batch {}): widen its lists or space.constraints, or change the "
        "number of devices; tensor must divide the heads and the devices, micro_batch a replica's share",
        model_.layers, model_.heads, size_.devices, size_.global_batch);
  }

  SpaceDescription description_;
  const spec::ModelSpec& model_;
  StudySize size_;
  std::vector<bool> recompute_, sequence_parallel_, context_kind_, schedule_;
  Constraint constraint_;
  std::vector<Point> points_;
};

}  // namespace

void bind(Schema& schema, SpaceDescription& d) {
  schema.table("space", "which strategies may be tried; an empty list or text stands for whatever is legal");
  schema.choice("space.preset", d.preset, {"none", "frontier-study"},
                "values for keys that are not given: frontier-study is the search of Dash et al. 2023 for 175B on 12 "
                "and 16 nodes");
  schema.key("space.devices", d.devices, "numbers of devices; empty: the study's", at_least(1));
  schema.key("space.tensor", d.tensor, "tensor parallel sizes", at_least(1));
  schema.key("space.pipeline", d.pipeline, "numbers of pipeline stages", at_least(1));
  schema.key("space.virtual_pipeline", d.virtual_pipeline, "chunks of a stage; over 1: interleaved", at_least(1));
  schema.key("space.context", d.context, "ranks that share each sequence", at_least(1));
  schema.key("space.context_kind", d.context_kind, "'ring', 'all_to_all', or both separated by a comma");
  schema.key("space.expert", d.expert, "ranks that a layer's experts lie on, of models with experts", at_least(1));
  schema.key("space.expert_tensor", d.expert_tensor, "0 (experts are cut as the tensor axis is) and 1 (whole)",
             between(0, 1));
  schema.key("space.micro_batch", d.micro_batch, "samples of a micro-batch", at_least(1));
  schema.key("space.micro_batches", d.micro_batches,
             "micro-batches that a replica runs in a step; given, the global batch follows from them", at_least(1));
  schema.key("space.global_batch", d.global_batch, "samples of a step; empty: the study's", at_least(1));
  schema.key("space.zero_stage", d.zero_stage, "0, 1 (optimizer state sharded) and 3 (parameters too)", between(0, 3));
  schema.key("space.recompute", d.recompute, "names of 'none', 'selective', 'full', separated by commas");
  schema.key("space.sequence_parallel", d.sequence_parallel, "'off', 'on', or both separated by a comma");
  schema.key("space.schedule", d.schedule,
             "of '1f1b', 'gpipe', 'zero_bubble' and 'zero_bubble_v', separated by commas");
  schema.key("space.constraints", d.constraints,
             "a condition on the numbers of a strategy, such as 'tensor * pipeline <= 64 and micro_batch >= 4'");
}

SpaceDescription with_preset(const SpaceDescription& description) {
  SpaceDescription result = description;
  if (description.preset == "none") return result;
  if (description.preset != "frontier-study") {
    throw InputError("space.preset = '{}': expected one of 'none', 'frontier-study'", description.preset);
  }
  const auto fill = [](std::vector<int64_t>& values, std::vector<int64_t> preset) {
    if (values.empty()) values = std::move(preset);
  };
  fill(result.devices, {12 * 8, 16 * 8});
  fill(result.tensor, {4, 8});
  fill(result.pipeline, {1, 2, 4, 8, 12, 16});
  fill(result.micro_batch, {4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20});
  if (result.global_batch.empty()) fill(result.micro_batches, {5, 10});
  if (result.recompute.empty()) result.recompute = "full";
  if (result.sequence_parallel.empty()) result.sequence_parallel = "off";
  return result;
}

PointSet enumerate(const SpaceDescription& description, const spec::ModelSpec& model, const StudySize& size) {
  return Enumerator(description, model, size).enumerate();
}

}  // namespace ridgeline::search
