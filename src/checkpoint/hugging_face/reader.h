// Weights in Hugging Face's form: a folder with model.safetensors, or with several files and their index
// model.safetensors.index.json. Read by our names, in any slice.
//
//   HuggingFaceReader reader(folder, model);
//   reader.read("layers.3.attention.qkv.weight", box, floats);
//
// Opening reads the files' headers and checks all of them against the model: what is missing, too much, of another shape
// or no floating point number is an InputError that names file and tensor. Values are decoded to fp32 as they are read;
// files are mapped and their pages given back, so memory is the destination.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "spec/hugging_face.h"

namespace ridgeline::checkpoint {

class HuggingFaceReader {
 public:
  HuggingFaceReader(const Path& folder, const spec::ModelSpec& model);

  // Fills `destination` with the elements of `box` of our parameter `name`, row-major.
  void read(const std::string& name, const spec::Box& box, std::span<float> destination) const;

  // The format that all tensors are stored in; F32 where they differ.
  DType stored() const { return stored_; }

 private:
  struct Source {
    spec::HuggingFaceTensor tensor;
    const SafetensorsFile* file;
    const TensorEntry* entry;
  };
  using Found = std::map<std::string, std::pair<const SafetensorsFile*, const TensorEntry*>>;

  void open_files();
  void open_index(const Path& index);
  Found find_all() const;
  Source take(const spec::ModelSpec& model, const spec::HuggingFaceTensor& tensor, Found& found) const;
  void read_part(const Source& source, const spec::Box& box, std::span<float> destination) const;

  Path folder_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, std::vector<Source>> sources_;  // by our name
  DType stored_ = DType::F32;
};

}  // namespace ridgeline::checkpoint
