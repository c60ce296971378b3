#include <fmt/format.h>

#include <map>
#include <vector>

#include "checkpoint/hugging_face/convert.h"
#include "checkpoint/hugging_face/copy.h"
#include "core/error.h"
#include "core/text.h"
#include "spec/parameters.h"

namespace ridgeline::checkpoint {
namespace {

using Tensors = std::vector<spec::HuggingFaceTensor>;

DType dtype_of(spec::Precision stored) {
  if (stored == spec::Precision::bf16) return DType::BF16;
  return stored == spec::Precision::fp16 ? DType::F16 : DType::F32;
}

uint64_t bytes_of(const spec::HuggingFaceTensor& tensor, DType dtype) {
  return static_cast<uint64_t>(tensor.box.elements() * element_size(dtype));
}

// The tensors of each file, in order.
std::vector<Tensors> split(const Tensors& tensors, DType dtype, uint64_t largest_file) {
  std::vector<Tensors> files(1);
  uint64_t bytes = 0;
  for (const spec::HuggingFaceTensor& tensor : tensors) {
    const uint64_t more = bytes_of(tensor, dtype);
    if (bytes > 0 && bytes + more > largest_file) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += more;
    files.back().push_back(tensor);
  }
  return files;
}

std::string file_name(size_t number, size_t files) {
  return files == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", number + 1, files);
}

class Exporter {
 public:
  Exporter(CheckpointReader& reader, const spec::ModelSpec& model, const Path& folder, DType dtype)
      : reader_(reader), folder_(folder), dtype_(dtype) {
    for (const spec::ParameterSpec& parameter : spec::declare_parameters(model, {})) {
      shapes_[parameter.name] = parameter.shape;
    }
  }

  void write_file(const Tensors& tensors, const std::string& name) {
    std::vector<TensorEntry> entries;
    std::map<std::string, const spec::HuggingFaceTensor*> by_name;
    for (const spec::HuggingFaceTensor& tensor : tensors) {
      entries.push_back({tensor.theirs, dtype_, tensor.shape, 0, 0});
      by_name[tensor.theirs] = &tensor;
    }
    SafetensorsWriter writer(real_file_system(), folder_ / name,
                             plan_safetensors(std::move(entries), {{"format", "pt"}}));
    for (const TensorEntry& entry : writer.header().tensors) writer.write(values_of(*by_name.at(entry.name)));
    writer.finish();
  }

 private:
  std::span<const std::byte> values_of(const spec::HuggingFaceTensor& tensor) {
    values_.resize(static_cast<size_t>(tensor.box.elements()));
    stored_.resize(bytes_of(tensor, dtype_));
    reader_.read(tensor.ours, DType::F32, shapes_.at(tensor.ours), box_slice(tensor.box),
                 std::as_writable_bytes(std::span(values_)));
    copy_to_theirs(tensor, *float_format(dtype_), values_, stored_);
    return stored_;
  }

  CheckpointReader& reader_;
  const Path& folder_;
  DType dtype_;
  std::map<std::string, std::vector<int64_t>> shapes_;  // of our parameters
  std::vector<float> values_;
  std::vector<std::byte> stored_;
};

std::string index_of(const std::vector<Tensors>& files, uint64_t bytes) {
  nlohmann::json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", nlohmann::json::object()}};
  for (size_t number = 0; number < files.size(); ++number) {
    for (const auto& tensor : files[number]) index["weight_map"][tensor.theirs] = file_name(number, files.size());
  }
  return index.dump(2) + "\n";
}

void require_room(FileSystem& files, const Path& folder, uint64_t bytes) {
  const uint64_t available = files.free_bytes(folder);
  if (bytes <= available) return;
  throw Failure("{}: the weights take {}, but only {} are free; free space, or export elsewhere", folder.string(),
                format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(available)));
}

}  // namespace

Exported export_hugging_face(CheckpointReader& reader, const spec::ModelSpec& model, const Path& asked,
                             const ExportOptions& options) {
  const DType dtype = dtype_of(options.stored);
  const Tensors tensors = spec::hugging_face_tensors(model);
  // Without a slash at its end.
  const Path folder = asked.has_filename() ? asked : asked.parent_path();
  std::error_code error;
  if (std::filesystem::exists(folder, error) && !std::filesystem::is_empty(folder, error)) {
    throw InputError("{}: is there already and not empty; expected the path of a new folder", folder.string());
  }
  const std::vector<Tensors> split_files = split(tensors, dtype, options.largest_file);
  Exported exported{0, static_cast<int64_t>(split_files.size())};
  for (const spec::HuggingFaceTensor& tensor : tensors) exported.bytes += bytes_of(tensor, dtype);

  FileSystem& files = real_file_system();
  const Path temporary = folder.string() + ".ridgeline-export";
  files.remove_folder(temporary);
  files.make_folders(temporary);
  require_room(files, temporary, exported.bytes);
  Exporter exporter(reader, model, temporary, dtype);
  for (size_t number = 0; number < split_files.size(); ++number) {
    exporter.write_file(split_files[number], file_name(number, split_files.size()));
  }
  if (split_files.size() > 1) {
    write_text(files, temporary / "model.safetensors.index.json", index_of(split_files, exported.bytes));
  }
  write_text(files, temporary / "config.json", spec::hugging_face_config(model, options.stored));
  files.sync_directory(temporary);
  files.rename(temporary, folder);
  files.sync_directory(folder.has_parent_path() ? folder.parent_path() : Path("."));
  return exported;
}

}  // namespace ridgeline::checkpoint
