// Weights in Hugging Face's form: what is exported and imported again is the same to the bit, any slice can be read, and
// hostile folders are refused with the file and the tensor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "checkpoint/hugging_face/convert.h"
#include "checkpoint/scratch_folder.h"
#include "checkpoint/writer.h"
#include "core/error.h"
#include "core/float_formats.h"
#include "spec/families.h"
#include "spec/parameters.h"

namespace ridgeline::checkpoint {
namespace {

using spec::Precision;
using testing::HasSubstr;

spec::ModelSpec small_model(const std::string& family) {
  spec::ModelSpec model;
  model.layers = 2;
  model.hidden = 24;
  model.heads = 4;
  model.ffn_hidden = 40;
  model.vocabulary = 37;
  model.sequence = 12;
  return spec::as_family(model, family);
}

FloatFormat format_of(Precision stored) {
  if (stored == Precision::bf16) return FloatFormat::bfloat16;
  return stored == Precision::fp16 ? FloatFormat::float16 : FloatFormat::float32;
}

// Values that `stored` can hold, different in every element of every parameter.
std::map<std::string, std::vector<float>> random_values(const spec::ModelSpec& model, Precision stored) {
  std::map<std::string, std::vector<float>> values;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const spec::ParameterSpec& parameter : spec::declare_parameters(model, {})) {
    std::vector<float>& list = values[parameter.name];
    list.resize(static_cast<size_t>(parameter.elements()));
    for (float& value : list) value = normal(random);
    std::vector<std::byte> bytes(list.size() * 4);
    encode_floats(format_of(stored), list.data(), bytes.data(), static_cast<int64_t>(list.size()));
    decode_floats(format_of(stored), bytes.data(), list.data(), static_cast<int64_t>(list.size()));
  }
  return values;
}

Path write_checkpoint(const Path& folder, const spec::ModelSpec& model,
                      const std::map<std::string, std::vector<float>>& values) {
  std::vector<TensorShard> shards;
  for (const spec::ParameterSpec& parameter : spec::declare_parameters(model, {})) {
    shards.push_back({parameter.name, DType::F32, parameter.shape, whole_slice(parameter.shape),
                      std::as_bytes(std::span(values.at(parameter.name)))});
  }
  ShardWriter(folder, 5, 0).write(shards);
  return publish(folder, 5, 1, {});
}

class HuggingFace : public testing::Test {
 protected:
  Path out() const { return folder_ / "out"; }

  // A folder `out` with the weights of a family, in files of at most `largest_file` bytes.
  std::map<std::string, std::vector<float>> export_family(const std::string& family, Precision stored = Precision::fp32,
                                                          uint64_t largest_file = 1u << 30) {
    model_ = small_model(family);
    const auto values = random_values(model_, stored);
    CheckpointReader reader(write_checkpoint(folder_ / "first", model_, values));
    export_hugging_face(reader, model_, out(), {stored, largest_file});
    return values;
  }

  std::string refusal() const {
    try {
      HuggingFaceReader reader(out(), model_);
      return "no error";
    } catch (const InputError& error) {
      return error.what();
    }
  }

  // Replaces the single file by one with other tensors; empty bytes stand for zeros.
  void rewrite(const std::function<void(std::vector<TensorEntry>&)>& change) const {
    std::vector<TensorEntry> entries = SafetensorsFile(out() / "model.safetensors").tensors();
    change(entries);
    SafetensorsWriter writer(real_file_system(), out() / "model.safetensors", plan_safetensors(entries, {}));
    const std::vector<std::byte> zeros(1 << 20);
    for (const TensorEntry& entry : writer.header().tensors) {
      writer.write(std::span(zeros).first(entry.end - entry.begin));
    }
    writer.finish();
  }

  void write_index(const std::string& tensor, const std::string& file) const {
    if (std::filesystem::exists(out() / "model.safetensors")) {
      std::filesystem::rename(out() / "model.safetensors", out() / "a.safetensors");
    }
    std::ofstream(out() / "model.safetensors.index.json") << R"({"weight_map": {")" + tensor + "\": \"" + file + "\"}}";
  }

  ScratchFolder scratch_;
  Path folder_ = scratch_.path();
  spec::ModelSpec model_;
};

using Case = std::tuple<std::string, Precision>;
class HuggingFaceRoundTrip : public HuggingFace, public testing::WithParamInterface<Case> {};

TEST_P(HuggingFaceRoundTrip, IsBitForBitAndReadsBackTheConfig) {
  const auto& [family, stored] = GetParam();
  const auto values = export_family(family, stored, /*largest_file=*/6000);
  EXPECT_TRUE(std::filesystem::exists(out() / "model.safetensors.index.json"));
  const spec::ModelSpec read_model = spec::read_hugging_face_model(out());
  EXPECT_EQ(spec::hugging_face_config(read_model, stored), spec::hugging_face_config(model_, stored));

  const HuggingFaceReader weights(out(), read_model);
  EXPECT_EQ(float_bytes(format_of(stored)), element_size(weights.stored()));
  CheckpointReader again(import_hugging_face(weights, read_model, folder_ / "second", nlohmann::json::object()));
  for (const spec::ParameterSpec& parameter : spec::declare_parameters(model_, {})) {
    const std::vector<float>& expected = values.at(parameter.name);
    std::vector<float> actual(expected.size());
    again.read(parameter.name, DType::F32, parameter.shape, whole_slice(parameter.shape),
               std::as_writable_bytes(std::span(actual)));
    EXPECT_EQ(std::memcmp(actual.data(), expected.data(), expected.size() * 4), 0) << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Experts, HuggingFaceRoundTrip,
                         testing::Combine(testing::Values("mixtral", "qwen3_moe"),
                                          testing::Values(Precision::fp32, Precision::bf16)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + spec::to_string(std::get<1>(info.param));
                         });

INSTANTIATE_TEST_SUITE_P(Families, HuggingFaceRoundTrip,
                         testing::Combine(testing::ValuesIn(spec::family_names()),
                                          testing::Values(Precision::fp32, Precision::bf16, Precision::fp16)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + spec::to_string(std::get<1>(info.param));
                         });

TEST_F(HuggingFace, AnySliceCanBeRead) {
  for (const std::string family : {"gpt", "llama", "qwen2"}) {
    std::filesystem::remove_all(folder_ / "first");
    std::filesystem::remove_all(out());
    const auto values = export_family(family);
    const HuggingFaceReader weights(out(), model_);
    std::mt19937 random(11);
    for (const spec::ParameterSpec& parameter : spec::declare_parameters(model_, {})) {
      for (int repeat = 0; repeat < 4; ++repeat) {
        spec::Box box;
        for (const int64_t extent : parameter.shape) {
          const int64_t begin = static_cast<int64_t>(random() % static_cast<uint64_t>(extent));
          box.offset.push_back(begin);
          box.extent.push_back(1 + static_cast<int64_t>(random() % static_cast<uint64_t>(extent - begin)));
        }
        std::vector<float> actual(static_cast<size_t>(box.elements())), expected(actual.size());
        weights.read(parameter.name, box, actual);
        copy_slice(whole_slice(parameter.shape), std::as_bytes(std::span(values.at(parameter.name))), box_slice(box),
                   std::as_writable_bytes(std::span(expected)), 4);
        EXPECT_EQ(actual, expected) << family << " " << parameter.name << " " << to_string(box_slice(box));
      }
    }
  }
}

TEST_F(HuggingFace, GptFilesMayHaveShorterNamesMasksAndMorePositions) {
  export_family("gpt");
  rewrite([](std::vector<TensorEntry>& entries) {
    for (TensorEntry& entry : entries) {
      entry.name.erase(0, std::strlen("transformer."));
      if (entry.name == "wpe.weight") entry.shape[0] = 20;
    }
    entries.push_back({"h.0.attn.bias", DType::F32, {1, 1, 12, 12}});
  });
  EXPECT_EQ(refusal(), "no error");
  model_.sequence = 21;
  EXPECT_THAT(refusal(), HasSubstr("tensor \"wpe.weight\" has the shape [20, 24], the model of this config needs [21, 24]"));
}

TEST_F(HuggingFace, WhatDoesNotFitTheModelIsNamed) {
  export_family("qwen2");
  const std::string file = (out() / "model.safetensors").string();
  const auto change = [&](const std::function<void(std::vector<TensorEntry>&)>& how) {
    std::filesystem::remove_all(folder_ / "first");
    std::filesystem::remove_all(out());
    export_family("qwen2");
    rewrite(how);
    return refusal();
  };
  const auto find = [](std::vector<TensorEntry>& entries, const std::string& name) {
    return std::find_if(entries.begin(), entries.end(), [&](const TensorEntry& entry) { return entry.name == name; });
  };
  const std::string key = "model.layers.1.self_attn.k_proj.weight";
  EXPECT_THAT(change([&](auto& entries) { entries.erase(find(entries, key)); }),
              HasSubstr(out().string() + ": no tensor \"" + key + "\" [12, 24], which the model of this config needs"));
  EXPECT_THAT(change([&](auto& entries) { entries.push_back({"model.layers.2.mlp.up_proj.weight", DType::F32, {4}}); }),
              HasSubstr(file + ": tensor \"model.layers.2.mlp.up_proj.weight\" [4]: the model of this config has no such"));
  EXPECT_THAT(change([&](auto& entries) { find(entries, key)->shape = {24, 12}; }),
              HasSubstr(file + ": tensor \"" + key + "\" has the shape [24, 12], the model of this config needs [12, 24]"));
  EXPECT_THAT(change([&](auto& entries) { find(entries, key)->dtype = DType::I32; }),
              HasSubstr("tensor \"" + key + "\" holds I32, expected F32, BF16 or F16"));
  // The tied output weight may be there, with the same values alone.
  EXPECT_EQ(change([&](auto& entries) { entries.push_back({"lm_head.weight", DType::F32, {37, 24}}); }), "no error");
  EXPECT_THAT(change([&](auto& entries) { entries.push_back({"lm_head.weight", DType::F32, {36, 24}}); }),
              HasSubstr("tensor \"lm_head.weight\" has the shape [36, 24]"));
  EXPECT_THAT(change([&](auto& entries) { entries.push_back({"lm_head.weight", DType::BF16, {37, 24}}); }),
              HasSubstr("tensor \"lm_head.weight\" differs from \"model.embed_tokens.weight\""));
}

TEST_F(HuggingFace, DamagedFilesAreNamed) {
  export_family("llama3");
  const Path file = out() / "model.safetensors";
  const auto size = std::filesystem::file_size(file);
  std::filesystem::resize_file(file, size - 8);
  EXPECT_THAT(refusal(), HasSubstr(file.string()));
  std::filesystem::resize_file(file, 100);
  EXPECT_THAT(refusal(), HasSubstr(file.string()));
  std::ofstream(file, std::ios::binary) << std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) << "{}";
  EXPECT_THAT(refusal(), HasSubstr(file.string()));
  std::filesystem::remove(file);
  EXPECT_THAT(refusal(), HasSubstr(out().string() + ": neither model.safetensors nor model.safetensors.index.json"));
}

TEST_F(HuggingFace, AnIndexCannotLeaveTheFolderNorLie) {
  for (const char* file : {"../a.safetensors", "/etc/passwd", "..", "sub/a.safetensors", ""}) {
    std::filesystem::remove_all(folder_ / "first");
    std::filesystem::remove_all(out());
    export_family("llama3");
    write_index("model.norm.weight", file);
    EXPECT_THAT(refusal(), HasSubstr("weight_map[\"model.norm.weight\"] = \"" + std::string(file) +
                                     "\": expected the name of a file in the same folder"));
  }
  write_index("model.norm.weight", "b.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("b.safetensors is not there"));
  std::ofstream(out() / "model.safetensors.index.json") << R"({"weight_map": {"nothing": "a.safetensors"}})";
  EXPECT_THAT(refusal(), HasSubstr("a.safetensors: no tensor \"nothing\", where"));
  std::ofstream(out() / "model.safetensors.index.json") << R"({"weight_map": {"model.norm.weight": 3}})";
  EXPECT_THAT(refusal(), HasSubstr("weight_map[\"model.norm.weight\"]: expected the name of a file"));
  std::ofstream(out() / "model.safetensors.index.json") << "{";
  EXPECT_THAT(refusal(), HasSubstr("model.safetensors.index.json"));
}

TEST_F(HuggingFace, ExportRefusesAFolderThatHoldsSomething) {
  export_family("llama");
  CheckpointReader reader(folder_ / "first" / "step-00000005");
  EXPECT_THROW(export_hugging_face(reader, model_, out(), {}), InputError);
  EXPECT_NO_THROW(export_hugging_face(reader, model_, folder_ / "other/", {}));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "other/model.safetensors"));
}

TEST_F(HuggingFace, ModelsThatNoFamilySaysAreRefused) {
  spec::ModelSpec model = small_model("llama3");
  model.norm = spec::Norm::layer_norm;
  EXPECT_THROW(spec::hugging_face_tensors(model), InputError);
  model = small_model("gpt");
  model.biases = spec::Biases::none;
  EXPECT_THROW(spec::hugging_face_type(model), InputError);
}

}  // namespace
}  // namespace ridgeline::checkpoint
