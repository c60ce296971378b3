#include "checkpoint/hugging_face/reader.h"

#include <algorithm>
#include <set>

#include "checkpoint/hugging_face/copy.h"
#include "core/error.h"
#include "core/json_input.h"
#include "core/text_file.h"

namespace ridgeline::checkpoint {
namespace {

constexpr size_t kLargestIndex = size_t{64} << 20;
constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

bool is_file(const Path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

// Of learned positions the first ones may be taken: a sample may be shorter than the longest that the model knows.
bool fits(const std::vector<int64_t>& shape, const spec::HuggingFaceTensor& tensor) {
  if (tensor.ours != "embedding.position.weight") return shape == tensor.shape;
  return shape.size() == 2 && shape[0] >= tensor.shape[0] && shape[1] == tensor.shape[1];
}

bool same_bytes(std::span<const std::byte> left, std::span<const std::byte> right) {
  return left.size() == right.size() && std::equal(left.begin(), left.end(), right.begin());
}

}  // namespace

HuggingFaceReader::HuggingFaceReader(const Path& folder, const spec::ModelSpec& model) : folder_(folder) {
  open_files();
  Found found = find_all();
  std::set<DType> dtypes;
  for (const spec::HuggingFaceTensor& tensor : spec::hugging_face_tensors(model)) {
    const Source source = take(model, tensor, found);
    dtypes.insert(source.entry->dtype);
    sources_[tensor.ours].push_back(source);
  }
  for (const auto& [name, where] : found) {
    if (spec::is_hugging_face_constant(name)) continue;
    throw InputError("{}: tensor \"{}\" {}: the model of this config has no such parameter ({}); another config.json, or "
                     "a model with parts that Ridgeline does not know", where.first->path().string(), name,
                     shape_text(where.second->shape), spec::hugging_face_type(model));
  }
  if (dtypes.size() == 1) stored_ = *dtypes.begin();
}

void HuggingFaceReader::open_files() {
  if (is_file(folder_ / kSingleFile)) {
    files_.push_back(std::make_unique<SafetensorsFile>(folder_ / kSingleFile));
  } else if (is_file(folder_ / kIndexFile)) {
    open_index(folder_ / kIndexFile);
  } else {
    throw InputError("{}: neither {} nor {} is there; expected a folder with Hugging Face weights in safetensors form",
                     folder_.string(), kSingleFile, kIndexFile);
  }
}

// The index says which file has which tensor. The files' own headers are what counts; the index must agree with them.
void HuggingFaceReader::open_index(const Path& index) {
  const std::string where = index.string();
  const nlohmann::json document = parse_json(read_text_file(where, "an index of safetensors files", kLargestIndex), where);
  const nlohmann::json& names = json_object(document, "weight_map", where);
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [tensor, value] : names.items()) {
    if (!value.is_string()) throw InputError("{}: weight_map[\"{}\"]: expected the name of a file", where, tensor);
    const std::string name = value.get<std::string>();
    const bool leaves = name.empty() || name != Path(name).filename().string() || name == "." || name == "..";
    if (leaves) {
      throw InputError("{}: weight_map[\"{}\"] = \"{}\": expected the name of a file in the same folder", where, tensor,
                       name);
    }
    if (!opened.contains(name)) {
      if (!is_file(folder_ / name)) throw InputError("{}: {} is not there; {} names it", folder_.string(), name, where);
      files_.push_back(std::make_unique<SafetensorsFile>(folder_ / name));
      opened[name] = files_.back().get();
    }
    if (opened.at(name)->find(tensor) == nullptr) {
      throw InputError("{}: no tensor \"{}\", where {} says that it is", (folder_ / name).string(), tensor, where);
    }
  }
}

HuggingFaceReader::Found HuggingFaceReader::find_all() const {
  Found found;
  for (const auto& file : files_) {
    for (const TensorEntry& entry : file->tensors()) {
      const auto [other, is_new] = found.try_emplace(entry.name, file.get(), &entry);
      if (is_new) continue;
      throw InputError("{}: tensor \"{}\" is in {} as well", file->path().string(), entry.name,
                       other->second.first->path().string());
    }
  }
  return found;
}

// The tensor, removed from `found` under all of its names.
HuggingFaceReader::Source HuggingFaceReader::take(const spec::ModelSpec& model, const spec::HuggingFaceTensor& tensor,
                                                  Found& found) const {
  Source source{tensor, nullptr, nullptr};
  for (const std::string& name : spec::hugging_face_aliases(model, tensor.theirs)) {
    const auto place = found.find(name);
    if (place == found.end()) continue;
    const auto [file, entry] = place->second;
    found.erase(place);
    if (!fits(entry->shape, tensor)) {
      throw InputError("{}: tensor \"{}\" has the shape {}, the model of this config needs {}", file->path().string(),
                       name, shape_text(entry->shape), shape_text(tensor.shape));
    }
    if (!float_format(entry->dtype)) {
      throw InputError("{}: tensor \"{}\" holds {}, expected F32, BF16 or F16", file->path().string(), name,
                       to_string(entry->dtype));
    }
    if (source.entry == nullptr) {
      source.file = file;
      source.entry = entry;
    } else if (!same_bytes(source.file->bytes(*source.entry), file->bytes(*entry))) {
      throw InputError("{}: tensor \"{}\" differs from \"{}\", whose values it should share (tie_word_embeddings)",
                       file->path().string(), name, source.entry->name);
    }
  }
  if (source.entry == nullptr) {
    throw InputError("{}: no tensor \"{}\" {}, which the model of this config needs", folder_.string(), tensor.theirs,
                     shape_text(tensor.shape));
  }
  return source;
}

void HuggingFaceReader::read(const std::string& name, const spec::Box& box, std::span<float> destination) const {
  const auto sources = sources_.find(name);
  if (sources == sources_.end()) throw InternalError("{}: no parameter {}", folder_.string(), name);
  RIDGELINE_ASSERT(static_cast<int64_t>(destination.size()) == box.elements());
  for (const Source& source : sources->second) read_part(source, box, destination);
}

void HuggingFaceReader::read_part(const Source& source, const spec::Box& box, std::span<float> destination) const {
  const std::span<const std::byte> bytes = source.file->bytes(*source.entry);
  copy_from_theirs(source.tensor, *float_format(source.entry->dtype), bytes, box, destination);
  source.file->forget(bytes);
}

}  // namespace ridgeline::checkpoint
