#include "nn/flat_parameters.h"

#include <algorithm>

#include "core/error.h"
#include "nn/initial_values.h"

namespace ridgeline::nn {

FlatParameters::FlatParameters(std::vector<spec::ParameterSpec> declared, spec::FlatLayout layout, at::ScalarType compute,
                               at::Device device)
    : declared_(std::move(declared)), layout_(std::move(layout)) {
  for (size_t index = 0; index < layout_.entries.size(); ++index) {
    entry_of_[declared_[layout_.entries[index].parameter].name] = index;
  }
  // Zeroed, so that padding between parameters never holds garbage that a reduction or a norm could see.
  values_ = at::zeros({layout_.elements}, at::TensorOptions().dtype(compute).device(device));
  gradients_ = at::zeros({layout_.elements}, at::TensorOptions().dtype(at::kFloat).device(device));
}

Parameter FlatParameters::parameter(const std::string& name) const {
  const auto found = entry_of_.find(name);
  if (found == entry_of_.end()) throw InternalError("no parameter {} in this stage", name);
  const spec::FlatEntry& entry = layout_.entries[found->second];
  auto view = [&](const at::Tensor& flat) {
    return flat.narrow(0, entry.range.begin, entry.range.size()).view(entry.box.extent);
  };
  return {view(values_), view(gradients_), entry.box};
}

Parameter FlatParameters::parameter_if_declared(const std::string& name) const {
  const bool declared = std::any_of(declared_.begin(), declared_.end(),
                                    [&](const spec::ParameterSpec& parameter) { return parameter.name == name; });
  return declared ? parameter(name) : Parameter{};
}

void FlatParameters::initialise(uint64_t seed, const std::function<void(const spec::FlatEntry&, const at::Tensor&)>& sink) {
  for (const spec::FlatEntry& entry : layout_.entries) {
    const at::Tensor initial = initial_value(declared(entry), entry.box, seed);
    sink(entry, initial);
    parameter(declared(entry).name).value.copy_(initial);
  }
}

}  // namespace ridgeline::nn
