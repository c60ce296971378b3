// Configurations of other programs, read as Ridgeline's own: what a user already has is where planning starts.
//
//   ForeignConfig config = read_foreign_config("train_llama.sh");
//   config.spec.model, config.spec.strategy      what was understood; all else is at Ridgeline's defaults
//
// Formats: config.json of Hugging Face transformers, shell scripts with arguments of Megatron-LM (and of
// Megatron-DeepSpeed), DeepSpeed's JSON, torchtitan's TOML, nanotron's YAML. docs/foreign-configs.md lists the keys.
//
// Nothing is guessed silently: every setting of the file stands in exactly one of the lists below, with how it was
// understood or why not; what the foreign program would fill in is listed as assumed. Files are hostile until checked:
// size, depth, number of settings, numbers out of range and wrong types are InputErrors with file, line or pointer,
// key.
#pragma once

#include <string>
#include <vector>

#include "spec/train.h"

namespace ridgeline::spec {

// One setting of the file, and what became of it.
struct ForeignSetting {
  std::string name;     // as the format writes it: "/hidden_size", "training.seq_len", "--num-layers"
  std::string value;    // as text, shortened where it is long
  std::string where;    // "FILE:LINE", or "FILE" where the format has no lines
  std::string meaning;  // "model.layers = 32", or why it has no effect
};

struct ForeignConfig {
  std::string format;  // "Hugging Face config.json (llama)"
  TrainSpec spec;
  bool has_model = false;                  // the file gives the shape of a model
  int64_t devices = 0;                     // that it is made for; 0: it does not say
  std::vector<ForeignSetting> understood;  // each sets keys of `spec`
  std::vector<ForeignSetting> beyond;      // understood, but no key of `spec` can say it yet
  std::vector<ForeignSetting> ignored;
  std::vector<std::string> assumed;  // keys that follow from the foreign program's defaults
  std::vector<std::string> missing;  // what the file cannot say and a run needs
};

// The formats' names: "huggingface", "megatron", "deepspeed", "torchtitan", "nanotron".
std::vector<std::string> foreign_format_names();

// Reads `path`; an empty `format` is found out from the file. Throws InputError.
ForeignConfig read_foreign_config(const std::string& path, const std::string& format = "");

// Whether `path` is a config of another program: all but TOML is, and a TOML with tables that only torchtitan has. A
// file that cannot be read as TOML is none: who reads it as a config of ours says what is wrong.
bool is_foreign_config(const std::string& path);

// The config of Ridgeline as TOML: keys that differ from the defaults alone, which reads back to the same spec.
std::string short_toml(const TrainSpec& spec);

}  // namespace ridgeline::spec
