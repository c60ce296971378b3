#include <vector>

#include "checkpoint/hugging_face/convert.h"
#include "checkpoint/writer.h"
#include "spec/parameters.h"

namespace ridgeline::checkpoint {

Path import_hugging_face(const HuggingFaceReader& weights, const spec::ModelSpec& model, const Path& folder,
                         const nlohmann::json& state) {
  constexpr int64_t step = 0;
  std::vector<TensorShard> shards;
  for (const spec::ParameterSpec& parameter : spec::declare_parameters(model, {})) {
    shards.push_back({parameter.name, DType::F32, parameter.shape, whole_slice(parameter.shape), {}});
  }
  std::vector<float> values;
  ShardWriter(folder, step, /*rank=*/0).write_in_turn(shards, [&](const TensorShard& shard) {
    values.resize(static_cast<size_t>(shard.slice.elements()));
    weights.read(shard.name, shard.slice.box, values);
    return std::as_bytes(std::span<const float>(values));
  });
  return publish(folder, step, /*world=*/1, {.consumed_samples = 0, .state = state});
}

}  // namespace ridgeline::checkpoint
