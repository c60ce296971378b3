#include "spec/foreign_shell_arithmetic.h"

#include <cctype>
#include <charconv>

namespace ridgeline::spec {
namespace {

constexpr int kDeepest = 32;

class Arithmetic {
 public:
  Arithmetic(const std::string& text, const std::function<std::optional<std::string>(const std::string&)>& lookup)
      : text_(text), lookup_(lookup) {}

  std::optional<int64_t> value() {
    const auto result = sum(0);
    skip();
    return position_ == text_.size() ? result : std::nullopt;
  }

 private:
  using Number = std::optional<int64_t>;

  void skip() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) ++position_;
  }

  // The next character if it is one of `wanted`, which is then taken, else 0.
  char take(const char* wanted) {
    skip();
    for (const char* one = wanted; *one != 0; ++one) {
      if (position_ < text_.size() && text_[position_] == *one) return ++position_, *one;
    }
    return 0;
  }

  static Number apply(char operation, int64_t left, int64_t right) {
    int64_t result = 0;
    if (operation == '+' && !__builtin_add_overflow(left, right, &result)) return result;
    if (operation == '-' && !__builtin_sub_overflow(left, right, &result)) return result;
    if (operation == '*' && !__builtin_mul_overflow(left, right, &result)) return result;
    const bool divides = right != 0 && !(left == INT64_MIN && right == -1);
    if (operation == '/' && divides) return left / right;
    if (operation == '%' && divides) return left % right;
    return std::nullopt;
  }

  Number sum(int depth) {
    Number left = product(depth);
    while (left) {
      const char operation = take("+-");
      if (operation == 0) break;
      const Number right = product(depth);
      left = right ? apply(operation, *left, *right) : std::nullopt;
    }
    return left;
  }

  Number product(int depth) {
    Number left = factor(depth);
    while (left) {
      const char operation = take("*/%");
      if (operation == 0) break;
      const Number right = factor(depth);
      left = right ? apply(operation, *left, *right) : std::nullopt;
    }
    return left;
  }

  Number factor(int depth) {
    if (depth > kDeepest) return std::nullopt;
    if (take("(") != 0) {
      const Number inner = sum(depth + 1);
      return take(")") != 0 ? inner : std::nullopt;
    }
    if (take("-") != 0) {
      const Number inner = factor(depth + 1);
      return inner ? apply('-', 0, *inner) : std::nullopt;
    }
    return operand();
  }

  Number operand() {
    const bool dollar = take("$") != 0;
    const bool braced = dollar && take("{") != 0;
    const size_t begin = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '_')) {
      ++position_;
    }
    const std::string word = text_.substr(begin, position_ - begin);
    if (word.empty() || (braced && take("}") == 0)) return std::nullopt;
    const bool is_number = !dollar && std::isdigit(static_cast<unsigned char>(word.front()));
    const std::optional<std::string> text = is_number ? std::optional<std::string>(word) : lookup_(word);
    if (!text) return std::nullopt;
    int64_t result = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), result);
    if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
    return result;
  }

  const std::string& text_;
  const std::function<std::optional<std::string>(const std::string&)>& lookup_;
  size_t position_ = 0;
};

}  // namespace

std::optional<int64_t> shell_arithmetic(const std::string& expression,
                                        const std::function<std::optional<std::string>(const std::string&)>& lookup) {
  return Arithmetic(expression, lookup).value();
}

}  // namespace ridgeline::spec
