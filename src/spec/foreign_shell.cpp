#include "spec/foreign_shell.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

#include "core/error.h"
#include "spec/foreign_shell_arithmetic.h"

namespace ridgeline::spec {
namespace {

constexpr size_t kMostExpanded = size_t{4} << 20;  // characters that words take up together
constexpr size_t kWordCost = 32;                   // of a word, be it empty
constexpr int kDeepestExpansion = 32;

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }

struct Variable {
  std::vector<ShellWord> words;
  std::string note = {};  // to be given where it is used
};

class ShellReader {
 public:
  ShellReader(const std::string& text, const std::string& file) : file_(file) {
    text_.reserve(text.size());
    for (const char character : text) {
      if (character != '\r') text_ += character;
    }
  }

  ShellScript read() {
    while (!at_end()) {
      ShellCommand command = read_command();
      if (!command.empty()) script_.commands.push_back(std::move(command));
    }
    return std::move(script_);
  }

 private:
  bool at_end() const { return position_ >= text_.size(); }
  char peek(size_t ahead = 0) const { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; }
  char next() {
    const char character = text_[position_++];
    if (character == '\n') ++line_;
    return character;
  }
  bool looking_at(const char* word) const { return text_.compare(position_, std::strlen(word), word) == 0; }
  [[noreturn]] void fail(int line, const std::string& what) const { throw InputError("{}:{}: {}", file_, line, what); }

  // Blanks, continued lines and a comment.
  void skip_blanks() {
    while (!at_end()) {
      if (peek() == ' ' || peek() == '\t') {
        next();
      } else if (peek() == '\\' && peek(1) == '\n') {
        next();
        next();
      } else if (peek() == '#') {
        while (!at_end() && peek() != '\n') next();
      } else {
        return;
      }
    }
  }

  // One simple command, up to what separates it from the next.
  ShellCommand read_command() {
    ShellCommand command;
    bool starts = true;  // assignments and keywords may come
    while (true) {
      skip_blanks();
      if (at_end()) return command;
      const char character = peek();
      if (character == '\n') {
        next();
        skip_here_documents();
        return command;
      }
      if (std::strchr(";&|()", character) != nullptr) return next(), command;
      if (character == '<' || character == '>') {
        redirect(command);
      } else if (starts && read_assignment()) {
        continue;
      } else {
        const size_t before = position_;
        std::vector<ShellWord> words = read_word();
        const std::string raw = text_.substr(before, position_ - before);
        if (starts && is_keyword(raw)) continue;
        if (starts && (raw == "export" || raw == "local" || raw == "declare" || raw == "readonly")) continue;
        if (starts && (raw == "for" || raw == "read")) return read_loop_variable(), command;
        starts = false;
        command.insert(command.end(), words.begin(), words.end());
      }
    }
  }

  bool is_keyword(const std::string& word) {
    if (word == "if" || word == "while" || word == "until" || word == "case") return ++conditions_, true;
    if ((word == "fi" || word == "done" || word == "esac") && conditions_ > 0) return --conditions_, true;
    for (const char* other : {"then", "else", "elif", "do", "fi", "done", "esac", "{", "}", "!", "time", "exec"}) {
      if (word == other) return true;
    }
    return false;
  }

  // The variable of `for` and `read` takes values that are not looked for.
  void read_loop_variable() {
    ++conditions_;
    skip_blanks();
    std::string name;
    while (is_name(peek())) name += next();
    variables_[name] = {{{.text = "$" + name, .unknown = "$" + name, .line = line_}}};
    while (!at_end() && peek() != '\n' && peek() != ';') next();
  }

  void redirect(ShellCommand& command) {
    // A number before it is that of a stream and no word, as in 2>&1.
    const bool glued = position_ > 0 && std::isdigit(static_cast<unsigned char>(text_[position_ - 1]));
    if (glued && !command.empty() && command.back().text.size() == 1) command.pop_back();
    const bool here_document = looking_at("<<") && peek(2) != '<';
    while (peek() == '<' || peek() == '>' || peek() == '&' || (here_document && peek() == '-')) next();
    skip_blanks();
    const size_t before = position_;
    if (!at_end() && peek() != '\n') read_word();
    if (!here_document) return;
    std::string end = text_.substr(before, position_ - before);
    end.erase(std::remove_if(end.begin(), end.end(), [](char c) { return c == '\'' || c == '"' || c == '\\'; }),
              end.end());
    here_documents_.push_back(end);
  }

  void skip_here_documents() {
    for (const std::string& end : here_documents_) {
      const int start = line_;
      while (true) {
        if (at_end()) fail(start, "the here-document does not end: expected the line that closes it");
        std::string line;
        while (!at_end() && peek() != '\n') line += next();
        if (!at_end()) next();
        const size_t begin = line.find_first_not_of('\t');
        if (begin != std::string::npos && line.substr(begin) == end) break;
        if (begin == std::string::npos && end.empty()) break;
      }
    }
    here_documents_.clear();
  }

  // NAME=value, NAME+=value, NAME=(words); false, and nothing taken, where there is none.
  bool read_assignment() {
    size_t end = position_;
    if (!is_name_start(peek())) return false;
    while (end < text_.size() && is_name(text_[end])) ++end;
    const bool appends = end + 1 < text_.size() && text_[end] == '+' && text_[end + 1] == '=';
    if (!appends && (end >= text_.size() || text_[end] != '=')) return false;
    const std::string name = text_.substr(position_, end - position_);
    position_ = end + (appends ? 2 : 1);
    const int line = line_;
    const bool is_array = peek() == '(';
    std::vector<ShellWord> words = is_array ? read_array() : std::vector<ShellWord>{read_value()};
    if (conditions_ > 0) {
      const std::string value = words.empty() ? "" : words.front().text;
      variables_[name].note = fmt::format("{}:{}: {} is set under a condition or in a loop; {} is taken", file_, line,
                                          name, is_array ? "this list" : "'" + value.substr(0, 40) + "'");
    }
    assign(variables_[name], std::move(words), appends, is_array);
    return true;
  }

  void assign(Variable& variable, std::vector<ShellWord> words, bool appends, bool is_array) {
    if (!appends) {
      variable.words = std::move(words);
    } else if (is_array || variable.words.empty()) {
      count(words.size() * kWordCost);
      variable.words.insert(variable.words.end(), words.begin(), words.end());
    } else {
      count(variable.words.front().text.size() + words.front().text.size());
      variable.words.front().text += words.front().text;
      if (variable.words.front().unknown.empty()) variable.words.front().unknown = words.front().unknown;
    }
    if (!is_array && conditions_ == 0 && !appends) variable.note.clear();
  }

  std::vector<ShellWord> read_array() {
    const int start = line_;
    std::vector<ShellWord> words;
    next();
    while (true) {
      skip_blanks();
      if (at_end()) fail(start, "the list does not end: expected ')'");
      if (peek() == '\n') {
        next();
      } else if (peek() == ')') {
        next();
        return words;
      } else if (std::strchr(";&|(<>", peek()) != nullptr) {
        fail(line_, fmt::format("'{}' in a list; expected words up to ')'", peek()));
      } else {
        for (ShellWord& word : read_word()) words.push_back(std::move(word));
      }
    }
  }

  // What an assignment of a scalar assigns: a word that is not split.
  ShellWord read_value() {
    ShellWord value{.text = "", .line = line_};
    if (at_end() || is_space(peek()) || std::strchr(";&|)", peek()) != nullptr) return value;
    bool first = true;
    for (const ShellWord& word : read_word(/*splits=*/false)) {
      if (!first) value.text += ' ';
      value.text += word.text;
      if (value.unknown.empty()) value.unknown = word.unknown;
      first = false;
    }
    return value;
  }

  // One word of the text, which is none, one or many after expansion.
  std::vector<ShellWord> read_word(bool splits = true) {
    std::vector<ShellWord> words;
    ShellWord word{.text = "", .line = line_};
    bool exists = false;
    while (!at_end() && !is_space(peek()) && std::strchr(";&|()<>", peek()) == nullptr) {
      const char character = next();
      if (character == '\\') {
        if (at_end()) break;
        const char escaped = next();
        if (escaped != '\n') word.text += escaped, exists = true;
      } else if (character == '\'') {
        exists = true;
        append_single_quoted(word);
      } else if (character == '"') {
        exists = true;
        append_double_quoted(words, word);
      } else if (character == '$' || character == '`') {
        const std::vector<ShellWord> values = expand(character, 0);
        append_expansion(words, word, exists, values, splits);
      } else {
        exists = true;
        word.text += character;
      }
      count(1);
    }
    if (exists || !word.text.empty()) words.push_back(std::move(word));
    return words;
  }

  void append_single_quoted(ShellWord& word) {
    const int start = line_;
    while (true) {
      if (at_end()) fail(start, "a quote (') does not end");
      const char character = next();
      if (character == '\'') return;
      word.text += character;
    }
  }

  void append_double_quoted(std::vector<ShellWord>& words, ShellWord& word) {
    const int start = line_;
    while (true) {
      if (at_end()) fail(start, "a quote (\") does not end");
      const char character = next();
      if (character == '"') return;
      if (character == '\\' && !at_end() && std::strchr("\\\"$`\n", peek()) != nullptr) {
        const char escaped = next();
        if (escaped != '\n') word.text += escaped;
      } else if (character == '$' || character == '`') {
        // "${LIST[@]}" is a word for each element.
        const std::vector<ShellWord> values = expand(character, 0);
        for (size_t index = 0; index < values.size(); ++index) {
          if (index > 0) {
            words.push_back(std::move(word));
            word = {.text = "", .line = line_};
          }
          append(word, values[index]);
        }
      } else {
        word.text += character;
      }
    }
  }

  void append(ShellWord& word, const ShellWord& value) {
    count(value.text.size() + kWordCost);
    word.text += value.text;
    if (word.unknown.empty()) word.unknown = value.unknown;
  }

  // Outside quotes a value is split at its blanks.
  void append_expansion(std::vector<ShellWord>& words, ShellWord& word, bool& exists,
                        const std::vector<ShellWord>& values, bool splits) {
    for (size_t index = 0; index < values.size(); ++index) {
      const ShellWord& value = values[index];
      count(value.text.size() + kWordCost);
      bool breaks = index > 0;
      for (const char character : value.text) {
        if (splits && value.unknown.empty() && is_space(character)) {
          breaks = true;
          continue;
        }
        if (breaks && exists) {
          words.push_back(std::move(word));
          word = {.text = "", .line = line_};
        }
        breaks = false;
        exists = true;
        word.text += character;
        if (word.unknown.empty()) word.unknown = value.unknown;
      }
      if (breaks && exists) {
        words.push_back(std::move(word));
        word = {.text = "", .line = line_};
        exists = false;
      }
    }
  }

  // After '$' or '`': what stands for it.
  std::vector<ShellWord> expand(char opener, int depth) {
    if (depth > kDeepestExpansion) fail(line_, "expansions nest deeper than 32 levels");
    const size_t begin = position_ - 1;
    if (opener == '`') return skip_to('`'), unknown_from(begin);
    if (looking_at("((")) return expand_arithmetic(begin);
    if (peek() == '(') return next(), skip_to(')'), unknown_from(begin);
    if (peek() == '{') return next(), expand_braces(begin, depth);
    if (is_name_start(peek())) {
      std::string name;
      while (is_name(peek())) name += next();
      return value_of(name, begin, /*all=*/false);
    }
    if (!at_end() && std::strchr("0123456789@*#?$!-", peek()) != nullptr) return next(), unknown_from(begin);
    return {{.text = "$", .line = line_}};
  }

  std::vector<ShellWord> unknown_from(size_t begin) {
    const std::string text = text_.substr(begin, std::min<size_t>(position_ - begin, 60));
    return {{.text = text, .unknown = text, .line = line_}};
  }

  // Past `closer`, over quotes and brackets within.
  void skip_to(char closer) {
    const int start = line_;
    int depth = 1;
    char quote = 0;
    while (depth > 0) {
      if (at_end()) fail(start, fmt::format("a substitution does not end: expected '{}'", closer));
      const char character = next();
      if (character == '\\' && !at_end()) {
        next();
      } else if (quote != 0) {
        if (character == quote) quote = 0;
      } else if (character == closer) {
        --depth;
      } else if (character == '\'' || character == '"') {
        quote = character;
      } else if ((character == '(' && closer == ')') || (character == '{' && closer == '}')) {
        ++depth;
      }
    }
  }

  std::vector<ShellWord> expand_arithmetic(size_t begin) {
    next();
    next();
    const size_t inner = position_;
    skip_to(')');
    const std::string expression = text_.substr(inner, position_ - 1 - inner);
    if (peek() == ')') next();
    const auto lookup = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      if (found == variables_.end() || found->second.words.size() != 1) return std::nullopt;
      const ShellWord& word = found->second.words.front();
      if (!word.unknown.empty()) return std::nullopt;
      give_note(found->second);
      return word.text;
    };
    const auto value = shell_arithmetic(expression, lookup);
    if (!value) return unknown_from(begin);
    return {{.text = fmt::format("{}", *value), .line = line_}};
  }

  // ${NAME}, ${NAME[@]}, ${NAME:-default}; other forms are unknown.
  std::vector<ShellWord> expand_braces(size_t begin, int depth) {
    std::string name;
    while (is_name(peek())) name += next();
    if (!name.empty() && peek() == '}') return next(), value_of(name, begin, /*all=*/false);
    if (!name.empty() && (looking_at("[@]}") || looking_at("[*]}"))) {
      for (int i = 0; i < 4; ++i) next();
      return value_of(name, begin, /*all=*/true);
    }
    if (!name.empty() && (looking_at(":-") || looking_at(":=") || peek() == '-' || peek() == '=')) {
      if (peek() == ':') next();
      next();
      ShellWord standard = read_default(depth);
      const auto found = variables_.find(name);
      if (found != variables_.end()) return value_of(name, begin, /*all=*/false);
      script_.notes.push_back(fmt::format("{}:{}: {} is not set in the file; its default '{}' is taken", file_, line_,
                                          name, standard.text.substr(0, 40)));
      return {standard};
    }
    skip_to('}');
    return unknown_from(begin);
  }

  ShellWord read_default(int depth) {
    const int start = line_;
    ShellWord word{.text = "", .line = line_};
    while (true) {
      if (at_end()) fail(start, "an expansion does not end: expected '}'");
      const char character = next();
      if (character == '}') return word;
      if (character == '\\' && !at_end()) {
        word.text += next();
      } else if (character == '$' || character == '`') {
        for (const ShellWord& value : expand(character, depth + 1)) append(word, value);
      } else if (character != '"' && character != '\'') {
        word.text += character;
      }
    }
  }

  std::vector<ShellWord> value_of(const std::string& name, size_t begin, bool all) {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return unknown_from(begin);
    give_note(found->second);
    const std::vector<ShellWord>& words = found->second.words;
    if (all || words.size() <= 1) return words;
    return {words.front()};
  }

  void give_note(Variable& variable) {
    if (!variable.note.empty()) script_.notes.push_back(std::move(variable.note));
    variable.note.clear();
  }

  void count(size_t characters) {
    expanded_ += characters;
    if (expanded_ > kMostExpanded) fail(line_, "variables expand to more than 4 MiB: this is no training script");
  }

  const std::string& file_;
  std::string text_;
  size_t position_ = 0;
  int line_ = 1;
  int conditions_ = 0;
  size_t expanded_ = 0;
  std::map<std::string, Variable> variables_;
  std::vector<std::string> here_documents_;
  ShellScript script_;
};

}  // namespace

ShellScript read_shell_script(const std::string& text, const std::string& file) {
  return ShellReader(text, file).read();
}

}  // namespace ridgeline::spec
