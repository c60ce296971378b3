#include "search/tune/constraint.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline::search {

struct Constraint::Node {
  std::string symbol;  // an operator; "number"; "name"
  int64_t number = 0;
  std::string name = {};
  std::shared_ptr<const Node> left = {}, right = {};
};

namespace {

using Node = Constraint::Node;
using NodePointer = std::shared_ptr<const Node>;

constexpr size_t kLongestText = 4096;
constexpr int kDeepest = 64;

class Parser {
 public:
  Parser(const std::string& text, const std::vector<std::string>& names) : text_(text), names_(names) {
    if (text.size() > kLongestText) {
      throw InputError("space.constraints: {} characters; expected at most {}", text.size(), kLongestText);
    }
    advance();
  }

  NodePointer parse() {
    NodePointer root = either();
    if (!token_.empty()) fail("expected an operator or the end");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const std::string found = token_.empty() ? "the end" : "'" + token_ + "'";
    throw InputError(
        "space.constraints: column {}: found {}, {}; write conditions such as \"tensor * pipeline <= 64 and "
        "micro_batch >= 4\"",
        start_ + 1, found, what);
  }

  void advance() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    start_ = at_;
    if (at_ == text_.size()) {
      token_.clear();
      return;
    }
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    if (is_word(text_[at_])) {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    } else {
      ++at_;
      const bool can_be_two = std::string("<>=!").find(text_[start_]) != std::string::npos;
      if (can_be_two && at_ < text_.size() && text_[at_] == '=') ++at_;
    }
    token_ = text_.substr(start_, at_ - start_);
  }

  bool accept(const std::string& symbol) {
    if (token_ != symbol) return false;
    advance();
    return true;
  }

  static NodePointer node(const std::string& symbol, NodePointer left, NodePointer right = nullptr) {
    return std::make_shared<Node>(Node{symbol, 0, {}, std::move(left), std::move(right)});
  }

  NodePointer either() {
    NodePointer left = both();
    while (accept("or")) left = node("or", left, both());
    return left;
  }

  NodePointer both() {
    NodePointer left = negated();
    while (accept("and")) left = node("and", left, negated());
    return left;
  }

  NodePointer negated() {
    if (token_ != "not") return comparison();
    enter();
    advance();
    NodePointer result = node("not", negated());
    --depth_;
    return result;
  }

  NodePointer comparison() {
    NodePointer left = sum();
    for (const char* symbol : {"<", "<=", ">", ">=", "==", "!="}) {
      if (accept(symbol)) return node(symbol, left, sum());
    }
    return left;
  }

  NodePointer sum() {
    NodePointer left = product();
    while (token_ == "+" || token_ == "-") {
      const std::string symbol = token_;
      advance();
      left = node(symbol, left, product());
    }
    return left;
  }

  NodePointer product() {
    NodePointer left = operand();
    while (token_ == "*" || token_ == "/" || token_ == "%") {
      const std::string symbol = token_;
      advance();
      left = node(symbol, left, operand());
    }
    return left;
  }

  NodePointer operand() {
    if (token_.empty()) fail("expected a name, a number or '('");
    if (accept("(")) {
      enter();
      NodePointer inner = either();
      if (!accept(")")) fail("expected ')'");
      --depth_;
      return inner;
    }
    if (std::isdigit(static_cast<unsigned char>(token_[0]))) return number();
    if (std::find(names_.begin(), names_.end(), token_) == names_.end()) {
      fail("expected one of " + join(names_) + did_you_mean(token_, names_));
    }
    auto result = std::make_shared<Node>(Node{"name", 0, token_});
    advance();
    return result;
  }

  NodePointer number() {
    const bool is_number = token_.size() <= 15 &&
                           std::all_of(token_.begin(), token_.end(), [](unsigned char c) { return std::isdigit(c); });
    if (!is_number) fail("expected a whole number below 1e15");
    auto result = std::make_shared<Node>(Node{"number", std::stoll(token_)});
    advance();
    return result;
  }

  void enter() {
    if (++depth_ > kDeepest) fail("nested deeper than 64");
  }

  const std::string& text_;
  const std::vector<std::string>& names_;
  size_t at_ = 0, start_ = 0;
  std::string token_;
  int depth_ = 0;
};

std::optional<int64_t> arithmetic(char symbol, int64_t left, int64_t right) {
  int64_t result = 0;
  const bool divides = symbol == '/' || symbol == '%';
  if (divides && (right == 0 || right == -1)) {  // the least number has no opposite, and processors trap on it
    if (right == 0) return std::nullopt;
    return symbol == '%' ? std::optional<int64_t>(0) : arithmetic('-', 0, left);
  }
  switch (symbol) {
    case '+':
      return __builtin_add_overflow(left, right, &result) ? std::nullopt : std::optional(result);
    case '-':
      return __builtin_sub_overflow(left, right, &result) ? std::nullopt : std::optional(result);
    case '*':
      return __builtin_mul_overflow(left, right, &result) ? std::nullopt : std::optional(result);
    case '/':
      return left / right;
    default:
      return left % right;
  }
}

std::optional<int64_t> evaluate(const Node& node, const std::map<std::string, int64_t>& numbers) {
  const std::string& symbol = node.symbol;
  if (symbol == "number") return node.number;
  if (symbol == "name") return numbers.at(node.name);
  const std::optional<int64_t> left = evaluate(*node.left, numbers);
  if (!left) return std::nullopt;
  if (symbol == "not") return *left == 0;
  if (symbol == "and" && *left == 0) return 0;
  if (symbol == "or" && *left != 0) return 1;
  const std::optional<int64_t> right = evaluate(*node.right, numbers);
  if (!right) return std::nullopt;
  if (symbol == "and" || symbol == "or") return *right != 0;
  if (symbol == "<") return *left < *right;
  if (symbol == "<=") return *left <= *right;
  if (symbol == ">") return *left > *right;
  if (symbol == ">=") return *left >= *right;
  if (symbol == "==") return *left == *right;
  if (symbol == "!=") return *left != *right;
  return arithmetic(symbol[0], *left, *right);
}

}  // namespace

Constraint::Constraint(const std::string& text, const std::vector<std::string>& names) {
  if (text.find_first_not_of(" \t\r\n") != std::string::npos) root_ = Parser(text, names).parse();
}

bool Constraint::holds(const std::map<std::string, int64_t>& numbers) const {
  return root_ == nullptr || evaluate(*root_, numbers).value_or(0) != 0;
}

}  // namespace ridgeline::search
