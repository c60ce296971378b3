#include "train/replica_check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checksum.h"
#include "core/error.h"
#include "core/text.h"

namespace ridgeline::train {
namespace {

constexpr size_t kMostNamed = 3;

// Hashes of what this rank keeps of each parameter, in the order of the layout.
std::vector<int64_t> hash_entries(const nn::FlatParameters& parameters) {
  std::vector<int64_t> hashes;
  for (const spec::FlatEntry& entry : parameters.layout().entries) {
    const spec::Range kept = parameters.kept_of(entry);
    uint64_t hash = 0;
    if (kept.size() > 0) {
      const at::Tensor host = parameters.values(parameters.layout().buckets[entry.bucket], kept).to(at::kCPU);
      hash = checkpoint::checksum_of({static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()});
    }
    hashes.push_back(static_cast<int64_t>(hash));
  }
  return hashes;
}

// Shards of a bucket lie alike on all ranks of the tensor axis unless a parameter in it is divided unevenly there.
bool lies_alike(const nn::FlatParameters& parameters, int64_t bucket, int64_t tensor_size) {
  return std::none_of(parameters.layout().entries.begin(), parameters.layout().entries.end(),
                      [&](const spec::FlatEntry& entry) {
                        const spec::ParameterSpec& parameter = parameters.declared(entry);
                        return entry.bucket == bucket && parameter.value.is_shard() &&
                               parameter.shape[parameter.value.dim] % tensor_size != 0;
                      });
}

// One axis on which copies exist, and the entries that are copies there.
struct Copies {
  const mesh::Communicator* group;
  std::vector<size_t> entries;
};

std::vector<Copies> all_copies(const nn::FlatParameters& parameters, const mesh::Mesh& mesh) {
  const mesh::Communicator& tensor = mesh.group(spec::Axis::tensor);
  const bool sharded = parameters.sharding().values;
  const auto copies_of = [&](bool experts) {
    const mesh::Mesh::Holders holders = mesh.holders(experts);
    return sharded ? &holders.replicas : &holders.all;
  };
  Copies over_data{copies_of(false), {}}, over_expert_data{copies_of(true), {}};
  Copies over_tensor{&tensor, {}}, over_stages{&mesh.tied(), {}};
  const std::vector<spec::FlatEntry>& entries = parameters.layout().entries;
  for (size_t index = 0; index < entries.size(); ++index) {
    const spec::FlatEntry& entry = entries[index];
    const bool is_expert = parameters.declared(entry).is_expert();
    (is_expert ? over_expert_data : over_data).entries.push_back(index);
    if (parameters.declared(entry).value.is_replicate() && !is_expert &&
        (!sharded || lies_alike(parameters, entry.bucket, tensor.size()))) {
      over_tensor.entries.push_back(index);
    }
    if (parameters.layout().buckets[entry.bucket].tied) over_stages.entries.push_back(index);
  }
  std::vector<Copies> list;
  for (Copies* copies : {&over_data, &over_expert_data, &over_tensor, &over_stages}) {
    if (copies->group->size() > 1 && !copies->entries.empty()) list.push_back(std::move(*copies));
  }
  return list;
}

// Row r holds what rank r of the group gave.
at::Tensor gather(const mesh::Communicator& group, const std::vector<int64_t>& values, at::Device device) {
  const auto count = static_cast<int64_t>(values.size());
  const at::Tensor mine = at::tensor(values, at::kLong).to(device);
  const at::Tensor all = at::empty({group.size(), count}, mine.options());
  group.all_gather(all, mine).wait();
  return all.to(at::kCPU);
}

std::vector<int64_t> chosen(const std::vector<int64_t>& hashes, const std::vector<size_t>& entries) {
  std::vector<int64_t> list;
  for (const size_t index : entries) list.push_back(hashes[index]);
  return list;
}

// Where column `column` differs: the ranks by value, those of the most common value last.
std::string differing_ranks(const at::Tensor& all, int64_t column, const mesh::Communicator& group) {
  std::map<int64_t, std::vector<int64_t>> ranks_of;
  for (int64_t row = 0; row < all.size(0); ++row) {
    ranks_of[all[row][column].item<int64_t>()].push_back(group.members()[static_cast<size_t>(row)]);
  }
  std::vector<std::vector<int64_t>> sets;
  for (auto& [hash, ranks] : ranks_of) sets.push_back(std::move(ranks));
  std::sort(sets.begin(), sets.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.size(), a.front()) < std::make_pair(b.size(), b.front());
  });
  std::vector<std::string> texts;
  for (const auto& ranks : sets) {
    texts.push_back(fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", ")));
  }
  return join(texts, " against ");
}

}  // namespace

void check_replicas(const nn::FlatParameters& parameters, const mesh::Mesh& mesh, int64_t finished_steps) {
  const at::Device device = mesh.device().torch();
  const std::vector<int64_t> hashes = hash_entries(parameters);
  std::vector<std::string> faults;
  size_t differing = 0;
  // Every member of a group sees the same rows, and so all of them or none go on to single parameters.
  for (const Copies& copies : all_copies(parameters, mesh)) {
    const std::vector<int64_t> mine = chosen(hashes, copies.entries);
    const auto bytes = std::as_bytes(std::span(mine));
    const at::Tensor whole = gather(*copies.group, {static_cast<int64_t>(checkpoint::checksum_of(bytes))}, device);
    if (whole.eq(whole[0]).all().item<bool>()) continue;
    const at::Tensor single = gather(*copies.group, mine, device);
    for (size_t column = 0; column < mine.size(); ++column) {
      const auto number = static_cast<int64_t>(column);
      if (single.select(1, number).eq(single[0][number]).all().item<bool>()) continue;
      if (++differing > kMostNamed) continue;
      const spec::FlatEntry& entry = parameters.layout().entries[copies.entries[column]];
      faults.push_back(fmt::format("{} ({})", parameters.declared(entry).name,
                                   differing_ranks(single, number, *copies.group)));
    }
  }
  if (differing == 0) return;
  if (differing > kMostNamed) faults.push_back(fmt::format("{} more", differing - kMostNamed));
  throw Failure("after step {}: copies of parameters that must be equal differ: {}. The memory or device of the ranks that "
                "differ may be faulty: leave their nodes out and continue from the last checkpoint",
                finished_steps, join(faults, "; "));
}

}  // namespace ridgeline::train
