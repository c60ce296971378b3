// How models are called in Hugging Face transformers: the class, config.json, and for each of our parameters the
// tensors that hold its values there. Pure declarations; reading and writing the files is checkpoint's.
//
// A model belongs to the first family of the table in hugging_face.cpp that can say all of its keys. Rotation pairs
// channel i of a head's first half with channel i of its second half on both sides, so queries and keys are copied as
// they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/model.h"
#include "spec/placement.h"
#include "spec/train.h"

namespace ridgeline::spec {

// The values of `box` of the parameter `ours` are those of the tensor `theirs`, element after element, or of its
// transpose (GPT-2's Conv1D has [in, out]): then the box's rows, its leading dims taken together, are their columns.
struct HuggingFaceTensor {
  std::string theirs;
  std::vector<int64_t> shape;  // theirs
  std::string ours;
  Box box;
  bool transposed = false;
};

// In the order of declared parameters. Throws InputError where no family of transformers can say the model.
std::vector<HuggingFaceTensor> hugging_face_tensors(const ModelSpec& model);

// "gpt2", "llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe". Throws InputError as above.
std::string hugging_face_type(const ModelSpec& model);

// config.json of a folder that holds the model with weights in `stored`.
std::string hugging_face_config(const ModelSpec& model, Precision stored);

// The model of the config.json in `folder`. Throws InputError where the file is not there, cannot be read, or says
// something that changes values and that no key of ours can say.
ModelSpec read_hugging_face_model(const std::string& folder);

// Where transformers has two names for the values of a tensor ("lm_head.weight" of a tied model, names without their
// leading "transformer."), all of them; the first is the one that is written.
std::vector<std::string> hugging_face_aliases(const ModelSpec& model, const std::string& theirs);

// A tensor that files may hold and that is no parameter: masks and tables that their programs make anew.
bool is_hugging_face_constant(const std::string& theirs);

}  // namespace ridgeline::spec
