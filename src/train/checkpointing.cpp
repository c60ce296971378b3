#include "train/checkpointing.h"

#include <span>

namespace ridgeline::train {
namespace {

constexpr checkpoint::DType kType = checkpoint::DType::F32;

std::span<std::byte> bytes_of(at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<size_t>(tensor.nbytes())};
}

// The three tensors of a state view under the names that they have in a checkpoint.
struct Named {
  std::string name;
  at::Tensor tensor;
};
std::vector<Named> named(const spec::ParameterSpec& parameter, const optim::StateView& view) {
  return {{parameter.name, view.master},
          {parameter.name + ".first_moment", view.first_moment},
          {parameter.name + ".second_moment", view.second_moment}};
}

}  // namespace

void write_state(const std::filesystem::path& folder, int64_t step, int64_t rank, const nn::FlatParameters& parameters,
                 const optim::Optimizer& optimizer) {
  std::vector<at::Tensor> host;  // keeps copies from a device alive until they are written
  std::vector<checkpoint::TensorShard> shards;
  for (const optim::StateView& view : optimizer.state_to_save()) {
    const spec::ParameterSpec& parameter = parameters.declared(*view.entry);
    for (Named& item : named(parameter, view)) {
      host.push_back(item.tensor.to(at::kCPU));
      shards.push_back({item.name, kType, parameter.shape, {view.entry->box, view.elements}, bytes_of(host.back())});
    }
  }
  checkpoint::ShardWriter(folder, step, rank).write(shards);
}

void read_parameters(checkpoint::CheckpointReader& reader, nn::FlatParameters& parameters,
                     const nn::FlatParameters::Sink& sink) {
  for (const spec::FlatEntry& entry : parameters.layout().entries) {
    const spec::ParameterSpec& parameter = parameters.declared(entry);
    const spec::Range kept = parameters.kept_of(entry);
    if (kept.size() == 0) continue;
    at::Tensor value = at::empty({kept.size()}, at::kFloat);
    const checkpoint::Slice slice{entry.box, {kept.begin - entry.range.begin, kept.end - entry.range.begin}};
    reader.read(parameter.name, kType, parameter.shape, slice, bytes_of(value));
    parameters.values(parameters.layout().buckets[entry.bucket], kept).copy_(value);
    if (sink) sink(entry, kept, value);
  }
}

void read_weights(const checkpoint::HuggingFaceReader& weights, nn::FlatParameters& parameters,
                  optim::Optimizer& optimizer) {
  for (const spec::FlatEntry& entry : parameters.layout().entries) {
    const spec::Range kept = parameters.kept_of(entry);
    if (kept.size() == 0) continue;
    // A shard of a tensor is cut from the whole of it: files of that form have no finer pieces.
    const at::Tensor whole = at::empty({entry.range.size()}, at::kFloat);
    weights.read(parameters.declared(entry).name, entry.box,
                 {whole.data_ptr<float>(), static_cast<size_t>(whole.numel())});
    const at::Tensor value = whole.narrow(0, kept.begin - entry.range.begin, kept.size());
    parameters.values(parameters.layout().buckets[entry.bucket], kept).copy_(value);
    optimizer.set_master(entry, kept, value);
  }
}

void read_state(checkpoint::CheckpointReader& reader, nn::FlatParameters& parameters, optim::Optimizer& optimizer) {
  read_parameters(reader, parameters, [&](const spec::FlatEntry& entry, const spec::Range& flat, const at::Tensor& value) {
    optimizer.set_master(entry, flat, value);
  });
  for (const optim::StateView& view : optimizer.state()) {
    const spec::ParameterSpec& parameter = parameters.declared(*view.entry);
    std::vector<Named> items = named(parameter, view);
    for (size_t index = 1; index < items.size(); ++index) {  // masters are read above
      // Imported weights have had no step: their moments are zero and not stored.
      if (reader.manifest().step == 0 && reader.manifest().find(items[index].name) == nullptr) {
        items[index].tensor.zero_();
        continue;
      }
      at::Tensor host = at::empty({view.elements.size()}, at::kFloat);
      reader.read(items[index].name, kType, parameter.shape, {view.entry->box, view.elements}, bytes_of(host));
      items[index].tensor.copy_(host);
    }
  }
}

}  // namespace ridgeline::train
