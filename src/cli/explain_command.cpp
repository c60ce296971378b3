// ridgeline explain: how a configuration of another program is understood, key by key, and the same as a config of
// ours.
#include <memory>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/print_json.h"
#include "cli/wrapped_text.h"
#include "core/error.h"
#include "core/text.h"
#include "spec/config.h"
#include "spec/foreign_config.h"
#include "spec/parameters.h"

namespace ridgeline::cli {
namespace {

constexpr size_t kIndent = 2;

struct Arguments {
  std::string path;
  std::string format;
  bool wants_json = false;
};

// What another program's file says may hold characters that would steer a terminal.
std::string harmless(const std::string& text) {
  std::string result;
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    result += code < 0x20 || code == 0x7f ? '?' : character;
  }
  return result;
}

void print_settings(const char* title, const std::vector<spec::ForeignSetting>& settings) {
  if (settings.empty()) return;
  fmt::print("\n{}\n", title);
  constexpr size_t column = 38;
  for (const spec::ForeignSetting& setting : settings) {
    const std::string left = harmless(setting.value.empty() ? setting.name : setting.name + " = " + setting.value);
    size_t cursor = kIndent + text_width(left);
    if (cursor + 1 < column) {
      fmt::print("{:{}}{}", "", kIndent, left);
    } else {
      print_wrapped(left, kIndent, 0);
      cursor = 0;
    }
    print_wrapped(harmless(setting.meaning), column, cursor);
  }
}

void print_list(const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  fmt::print("\n{}\n", title);
  for (const std::string& line : lines) print_wrapped(harmless(line), kIndent, 0);
}

// Why `train` would refuse it; empty where it would not.
std::string not_trainable(const spec::ForeignConfig& config) {
  if (!config.has_model) return "";
  try {
    spec::require_trainable(config.spec.model);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

void print_text(const Arguments& arguments, const spec::ForeignConfig& config) {
  print_wrapped(harmless(fmt::format("{}: {}", arguments.path, config.format)), 0, 0);
  if (config.has_model) {
    const int64_t count = spec::parameter_count(config.spec.model);
    fmt::print("Model: {} parameters ({})\n", format_count(static_cast<double>(count)), count);
  }
  if (config.devices > 0) fmt::print("Made for {} devices\n", config.devices);
  print_settings("Understood", config.understood);
  print_settings("Understood, but no key of a config says it yet", config.beyond);
  print_settings("Ignored", config.ignored);
  print_list("Not in the file, and taken for granted", config.assumed);
  print_list("Not in the file, and to be given", config.missing);
  const std::string reason = not_trainable(config);
  if (!reason.empty()) print_list("For planning alone", {reason});
  fmt::print("\nAs a config of Ridgeline (keys that differ from the defaults):\n\n{}", spec::short_toml(config.spec));
}

nlohmann::json json_of(const std::vector<spec::ForeignSetting>& settings) {
  nlohmann::json list = nlohmann::json::array();
  for (const spec::ForeignSetting& setting : settings) {
    list.push_back(
        {{"key", setting.name}, {"value", setting.value}, {"where", setting.where}, {"meaning", setting.meaning}});
  }
  return list;
}

void print_document(const Arguments& arguments, const spec::ForeignConfig& config) {
  nlohmann::json document = {{"file", arguments.path},
                             {"format", config.format},
                             {"understood", json_of(config.understood)},
                             {"beyond", json_of(config.beyond)},
                             {"ignored", json_of(config.ignored)},
                             {"assumed", config.assumed},
                             {"missing", config.missing},
                             {"trainable", config.has_model ? nlohmann::json(not_trainable(config).empty()) : nullptr},
                             {"parameters", nullptr},
                             {"devices", nullptr},
                             {"config", spec::short_toml(config.spec)}};
  if (config.has_model) document["parameters"] = spec::parameter_count(config.spec.model);
  if (config.devices > 0) document["devices"] = config.devices;
  print_json(document);
}

}  // namespace

void add_explain_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("explain", "Say how a configuration of another program is understood");
  command
      ->add_option("FILE", arguments->path,
                   "config.json (Hugging Face), Megatron-LM script, DeepSpeed JSON, torchtitan TOML, nanotron YAML")
      ->required();
  command->add_option("--format", arguments->format, "do not find it out: " + join(spec::foreign_format_names()))
      ->type_name("NAME");
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->footer(
      "Examples:\n"
      "  ridgeline explain Llama-3.1-8B/config.json\n"
      "  ridgeline explain train_gpt3_175b.sh --json");
  command->callback([arguments, &exit_code] {
    const spec::ForeignConfig config = spec::read_foreign_config(arguments->path, arguments->format);
    if (arguments->wants_json) {
      print_document(*arguments, config);
    } else {
      print_text(*arguments, config);
    }
    exit_code = kDone;
  });
}

}  // namespace ridgeline::cli
