#include "spec/foreign_config.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/text.h"
#include "core/text_file.h"
#include "spec/config.h"
#include "spec/foreign_formats.h"
#include "spec/foreign_text.h"

namespace ridgeline::spec {
namespace {

constexpr const char* kFormats =
    "a config.json of Hugging Face transformers, a shell script that starts Megatron-LM, a DeepSpeed JSON, a "
    "torchtitan "
    "TOML or a nanotron YAML";

bool has_any(const std::vector<Setting>& settings, std::initializer_list<const char*> prefixes) {
  return std::any_of(settings.begin(), settings.end(), [&](const Setting& setting) {
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](const char* prefix) { return setting.name.starts_with(prefix); });
  });
}

// The first of the ways to read a text that its first characters and the file's name allow.
std::string syntax_of(const std::string& text, const std::string& path) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) throw InputError("{}: is empty; expected {}", path, kFormats);
  if (text[begin] == '{' || path.ends_with(".json")) return "json";
  if (path.ends_with(".toml")) return "toml";
  if (path.ends_with(".yaml") || path.ends_with(".yml")) return "yaml";
  if (path.ends_with(".sh") || path.ends_with(".slurm") || path.ends_with(".sbatch") || path.ends_with(".bash") ||
      text.compare(begin, 2, "#!") == 0 || text.find("--num-layers") != std::string::npos) {
    return "shell";
  }
  throw InputError("{}: neither its name nor its first characters tell what it is; expected {}", path, kFormats);
}

std::string json_format(const std::vector<Setting>& settings, const std::string& path) {
  if (has_any(settings, {"/model_type"})) return "huggingface";
  if (has_any(settings, {"/train_batch_size", "/train_micro_batch_size_per_gpu", "/gradient_accumulation_steps",
                         "/zero_optimization", "/bf16/", "/fp16/"})) {
    return "deepspeed";
  }
  throw InputError(
      "{}: neither \"model_type\" (Hugging Face) nor a key of DeepSpeed such as \"train_batch_size\"; expected {}",
      path, kFormats);
}

std::string toml_format(const std::vector<Setting>& settings, const std::string& path) {
  if (has_any(settings, {"strategy.", "precision.", "data.", "evaluation."})) {
    throw InputError(
        "{}: has a [strategy], [precision], [data] or [evaluation]: this is a config of Ridgeline already; `ridgeline "
        "train` and `simulate` take it",
        path);
  }
  if (has_any(settings, {"parallelism.", "training.", "model.flavor", "job."})) return "torchtitan";
  throw InputError("{}: no table of torchtitan ([parallelism], [training], [job]); expected {}", path, kFormats);
}

std::string yaml_format(const std::vector<Setting>& settings, const std::string& path) {
  if (has_any(settings, {"model.model_config.", "parallelism.", "tokens."})) return "nanotron";
  throw InputError("{}: no key of nanotron (model.model_config, parallelism, tokens); expected {}", path, kFormats);
}

using Reader = void (*)(Reading&);
Reader reader_of(const std::string& format) {
  if (format == "huggingface") return read_hugging_face;
  if (format == "deepspeed") return read_deepspeed;
  if (format == "torchtitan") return read_torchtitan;
  RIDGELINE_ASSERT(format == "nanotron");
  return read_nanotron;
}

void read_settings(const std::string& text, const std::string& path, std::string format, ForeignConfig& config) {
  const std::string syntax = format.empty()           ? syntax_of(text, path)
                             : format == "torchtitan" ? "toml"
                             : format == "nanotron"   ? "yaml"
                             : format == "megatron"   ? "shell"
                                                      : "json";
  if (syntax == "shell") return read_megatron(text, path, config);
  std::vector<Setting> settings = syntax == "json"   ? settings_of_json(text, path)
                                  : syntax == "toml" ? settings_of_toml(text, path)
                                                     : settings_of_yaml(text, path);
  if (format.empty()) {
    format = syntax == "json"   ? json_format(settings, path)
             : syntax == "toml" ? toml_format(settings, path)
                                : yaml_format(settings, path);
  }
  Reading reading(config, std::move(settings), path);
  reader_of(format)(reading);
  reading.finish();
}

}  // namespace

void read_zero_stage(Reading& reading, const std::string& name) {
  const auto stage = reading.integer(name, 0, 3);
  if (!stage) return;
  Strategy& strategy = reading.config().spec.strategy;
  strategy.zero_stage = std::max(strategy.zero_stage, *stage);
  reading.understood(name, assignment("strategy.zero_stage", strategy.zero_stage));
}

void read_other_axis(Reading& reading, const std::string& name, int64_t width, const std::string& shares) {
  if (width == 1) reading.ignore(name, "1: not used");
  reading.beyond(name, fmt::format("{} over {} devices", shares, width));
}

int64_t read_context(Reading& reading, const std::string& name, ContextKind kind) {
  Strategy& strategy = reading.config().spec.strategy;
  if (!reading.set(name, strategy.context, "strategy.context", 1, 1'000'000)) return strategy.context;
  strategy.context_kind = kind;
  if (strategy.context > 1) reading.assume(assignment("strategy.context_kind", to_string(kind)));
  return strategy.context;
}

void set_devices(Reading& reading, std::initializer_list<int64_t> axes) {
  constexpr int64_t most = 1'000'000'000;
  int64_t devices = 1;
  for (const int64_t axis : axes) {
    if (axis > most / devices) {
      throw InputError("{}: its degrees of parallelism multiply to more than {} devices; expected those of a machine",
                       reading.file(), most);
    }
    devices *= axis;
  }
  reading.config().devices = devices;
}

int64_t data_width(const Reading& reading, int64_t others) {
  const ForeignConfig& config = const_cast<Reading&>(reading).config();
  const Strategy& strategy = config.spec.strategy;
  if (config.devices == 0) return 0;
  const int64_t group = strategy.tensor * strategy.pipeline;  // at most 1e12
  if (group > config.devices || others > config.devices / group || config.devices % (group * others) != 0) {
    throw InputError("{}: {} devices cannot be cut in groups of tensor * pipeline{} = {} * {}{}; change one of them",
                     reading.file(), config.devices, others > 1 ? " * context" : "", strategy.tensor, strategy.pipeline,
                     others > 1 ? fmt::format(" * {}", others) : "");
  }
  return config.devices / (group * others);
}

std::vector<std::string> foreign_format_names() {
  return {"huggingface", "megatron", "deepspeed", "torchtitan", "nanotron"};
}

bool is_foreign_config(const std::string& path) {
  if (!path.ends_with(".toml")) return true;
  try {
    const std::vector<Setting> settings = settings_of_toml(read_text_file(path, kFormats), path);
    const bool is_ours = has_any(settings, {"strategy.", "precision.", "data.", "evaluation.", "model.preset"});
    return !is_ours && has_any(settings, {"parallelism.", "job.", "model.flavor", "activation_checkpoint."});
  } catch (const InputError&) {
    return false;
  }
}

ForeignConfig read_foreign_config(const std::string& path, const std::string& format) {
  const std::vector<std::string> names = foreign_format_names();
  if (!format.empty() && std::find(names.begin(), names.end(), format) == names.end()) {
    throw InputError("--format {}: no such format{} (the formats are {})", format, did_you_mean(format, names),
                     join(names));
  }
  ForeignConfig config;
  read_settings(read_text_file(path, kFormats), path, format, config);
  return config;
}

std::string short_toml(const TrainSpec& spec) {
  // A preset sets keys of its own: what differs from it is written then.
  TrainSpec base;
  if (!spec.model_preset.empty()) base.model = model_preset(spec.model_preset);
  const auto lines = [](const std::string& text) {
    std::vector<std::string> list;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      list.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return list;
  };
  const std::vector<std::string> all = lines(to_toml(spec)), standard = lines(to_toml(base));
  RIDGELINE_ASSERT(all.size() == standard.size());
  std::string text, table;
  for (size_t index = 0; index < all.size(); ++index) {
    if (all[index].starts_with("[")) table = all[index];
    if (all[index] == standard[index]) continue;
    if (!table.empty()) text += (text.empty() ? "" : "\n") + table + "\n";
    table.clear();
    text += all[index] + "\n";
  }
  return text;
}

}  // namespace ridgeline::spec
