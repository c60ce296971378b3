// Which words of a shell script are arguments of Megatron-LM, and of what started it.
#include "spec/foreign_megatron_arguments.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/error.h"
#include "spec/foreign_shell.h"

namespace ridgeline::spec {
namespace {

// A script that starts Megatron says most of these somewhere.
constexpr std::array kTelling = {"--num-layers",
                                 "--hidden-size",
                                 "--num-attention-heads",
                                 "--seq-length",
                                 "--micro-batch-size",
                                 "--global-batch-size",
                                 "--tensor-model-parallel-size",
                                 "--pipeline-model-parallel-size",
                                 "--train-iters",
                                 "--train-samples",
                                 "--lr"};

bool is_option(const std::string& word) { return word.size() > 2 && word.starts_with("--") && word[2] != '-'; }

// `bash -c "..."`, `eval "..."` and lists kept in one string: words within a word.
ShellCommand split_nested(const ShellCommand& command) {
  ShellCommand words;
  for (const ShellWord& word : command) {
    if (word.text.find("--") == std::string::npos || word.text.find_first_of(" \t\n") == std::string::npos) {
      words.push_back(word);
      continue;
    }
    size_t begin = 0;
    while ((begin = word.text.find_first_not_of(" \t\n\\", begin)) != std::string::npos) {
      const size_t end = std::min(word.text.find_first_of(" \t\n", begin), word.text.size());
      std::string part = word.text.substr(begin, end - begin);
      std::erase_if(part, [](char c) { return c == '"' || c == '\''; });
      const bool unknown = !word.unknown.empty() && part.find(word.unknown.substr(0, 2)) != std::string::npos;
      words.push_back({part, unknown ? word.unknown : "", word.line});
      begin = end;
    }
  }
  return words;
}

int telling_words(const ShellCommand& command) {
  int count = 0;
  for (const ShellWord& word : command) {
    const std::string name = word.text.substr(0, word.text.find('='));
    count += std::find(kTelling.begin(), kTelling.end(), name) != kTelling.end() ? 1 : 0;
  }
  return count;
}

// The command with the most of Megatron's arguments, the last one of equals; a file that holds arguments and no command
// is one command.
ShellCommand choose_command(const std::vector<ShellCommand>& commands, const std::string& file) {
  ShellCommand best, bare;
  int most = 1;
  for (const ShellCommand& nested : commands) {
    const ShellCommand command = split_nested(nested);
    const int count = telling_words(command);
    if (count >= 2 && count >= most) {
      most = count;
      best = command;
    }
    if (!command.empty() && is_option(command.front().text)) bare.insert(bare.end(), command.begin(), command.end());
  }
  if (telling_words(bare) > telling_words(best)) best = bare;
  if (best.empty()) {
    throw InputError(
        "{}: no command with arguments of Megatron-LM found (such as --num-layers and --hidden-size); expected "
        "the script that starts pretrain_gpt.py, with its arguments in it",
        file);
  }
  return best;
}

std::string dashed(std::string name) {
  std::replace(name.begin() + 2, name.end(), '_', '-');
  return name;
}

bool is_program(const std::string& word) { return word.ends_with(".py") || word.ends_with(".sh"); }

}  // namespace

MegatronArguments megatron_arguments(const std::string& text, const std::string& file) {
  ShellScript script = read_shell_script(text, file);
  const ShellCommand command = choose_command(script.commands, file);
  const bool has_program =
      std::any_of(command.begin(), command.end(), [](const ShellWord& word) { return is_program(word.text); });
  MegatronArguments arguments{.settings = {}, .notes = std::move(script.notes)};
  std::map<std::string, size_t> index;
  bool of_launcher = has_program;
  Setting* open = nullptr;  // takes the words that follow
  for (const ShellWord& word : command) {
    const std::string where = fmt::format("{}:{}", file, word.line);
    if (is_program(word.text) && of_launcher) {
      of_launcher = false;
      open = nullptr;
    } else if (is_option(word.text)) {
      const size_t equals = word.text.find('=');
      std::string name = word.text.substr(0, equals);
      // Those of torchrun, deepspeed or srun are told apart: srun has a --nodes, too.
      if (of_launcher) name = dashed(name);
      Setting setting{.name = name, .text = "", .where = where, .untyped = true};
      if (equals != std::string::npos) setting.text = word.text.substr(equals + 1), setting.unknown = word.unknown;
      const auto [found, is_new] = index.emplace(name, arguments.settings.size());
      if (is_new) {
        arguments.settings.push_back(setting);
      } else {
        arguments.notes.push_back(fmt::format("{}: {} stands there again and wins", where, name));
        arguments.settings[found->second] = setting;
      }
      open = &arguments.settings[found->second];
    } else if (open != nullptr) {
      open->text += (open->text.empty() ? "" : " ") + word.text;
      if (open->unknown.empty()) open->unknown = word.unknown;
    } else if (!word.unknown.empty()) {
      arguments.notes.push_back(fmt::format("{}: {} may hold arguments; the file does not say", where, word.unknown));
    }
  }
  return arguments;
}

}  // namespace ridgeline::spec
