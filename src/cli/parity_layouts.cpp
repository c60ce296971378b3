#include "cli/parity_layouts.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/train_arguments.h"
#include "core/error.h"
#include "core/text.h"

namespace ridgeline::cli {
namespace {

// Keys that change what is computed, and not only how.
constexpr const char* kNoLayout = "global_batch";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else if (c != ' ' && c != '\n' && c != '\t') {
      parts.back() += c;
    }
  }
  return parts;
}

int64_t positive(const std::string& word, const std::string& layout, const std::string& value) {
  const bool digits = !value.empty() && value.size() <= 5 &&
                      std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
  const int64_t number = digits ? std::stoll(value) : 0;
  if (number < 1 || number > 4096) {
    throw InputError("--layouts, \"{}\": {} = {}: expected an integer 1 to 4096", layout, word, value);
  }
  return number;
}

// Words of one layout, in brackets or not: "stage_layers=[2,3]" holds a comma.
std::vector<std::string> words_of(const std::string& layout) {
  std::vector<std::string> words;
  int depth = 0;
  for (const std::string& piece : split(layout, ',')) {
    if (depth > 0) {
      words.back() += "," + piece;
    } else {
      words.push_back(piece);
    }
    depth += static_cast<int>(std::count(piece.begin(), piece.end(), '[')) -
             static_cast<int>(std::count(piece.begin(), piece.end(), ']'));
  }
  return words;
}

ParityLayout parse_layout(const std::string& text, const TrainArguments& base) {
  ParityLayout layout{text, {}, 1};
  int64_t data = 1;
  for (const std::string& word : words_of(text)) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      throw InputError("--layouts, \"{}\": \"{}\" is no KEY=VALUE; expected words such as tensor=2,pipeline=2", text, word);
    }
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "data") {
      data = positive(key, text, value);
    } else if (key == kNoLayout) {
      throw InputError("--layouts, \"{}\": {} changes what is computed; give it to all layouts by --set strategy.{}={}", text,
                       key, key, value);
    } else {
      layout.sets.push_back("strategy." + word);
    }
  }
  TrainArguments arguments = base;
  arguments.sets.insert(arguments.sets.end(), layout.sets.begin(), layout.sets.end());
  try {
    const spec::Strategy strategy = spec::load_train_spec(arguments.config, arguments.sets).spec.strategy;
    const int64_t ranks = strategy.tensor * strategy.context * strategy.pipeline * data;
    if (ranks > 4096) throw InputError("{} ranks are more than one machine runs; expected at most 4096", ranks);
    layout.ranks = static_cast<int>(ranks);
    load(arguments, layout.ranks);
  } catch (const InputError& error) {
    throw InputError("--layouts, \"{}\": {}", text, error.what());
  }
  return layout;
}

}  // namespace

std::vector<ParityLayout> parse_parity_layouts(const std::string& text, const std::string& config,
                                               const std::vector<std::string>& sets) {
  std::vector<ParityLayout> layouts;
  for (const std::string& part : split(text, ';')) {
    if (!part.empty()) layouts.push_back(parse_layout(part, {config, sets}));
  }
  if (layouts.size() < 2) {
    throw InputError("--layouts \"{}\": expected at least two layouts with a ; between, such as \"data=1; tensor=2\"", text);
  }
  return layouts;
}

// fp32: sums in another order. bf16 has 8 bits, fp16 11: partial sums of the tensor axis are rounded to them.
ParityBounds parity_bounds(const std::string& precision) {
  if (precision == "bf16") return {2e-3, 3e-2};
  if (precision == "fp16") return {5e-4, 1e-2};
  return {1e-5, 1e-5};
}

ParityRun read_parity_run(const std::string& metrics_file, int64_t steps) {
  ParityRun run;
  std::ifstream file(metrics_file);
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json step = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool good = step.is_object() && step.contains("loss") && step.contains("grad_norm") &&
                      step["loss"].is_number() && step["grad_norm"].is_number();
    if (!good) throw Failure("{}: line {} is no step with loss and grad_norm", metrics_file, run.losses.size() + 1);
    run.losses.push_back(step["loss"].get<double>());
    run.gradient_norms.push_back(step["grad_norm"].get<double>());
  }
  if (static_cast<int64_t>(run.losses.size()) != steps) {
    throw Failure("{}: holds {} steps, expected {}", metrics_file, run.losses.size(), steps);
  }
  return run;
}

ParityDifference compare(const ParityRun& run, const ParityRun& reference, const ParityBounds& bounds) {
  ParityDifference difference;
  double worst = -1;
  for (size_t step = 0; step < reference.losses.size(); ++step) {
    const double loss = std::abs(run.losses[step] / reference.losses[step] - 1);
    const double norm = std::abs(run.gradient_norms[step] / reference.gradient_norms[step] - 1);
    const double share = std::max(loss / bounds.loss, norm / bounds.gradient_norm);
    if (!(share <= worst)) {  // what is no number counts as worst
      worst = share;
      difference.step = static_cast<int64_t>(step) + 1;
    }
    difference.within = difference.within && share <= 1;
    difference.loss = std::max(loss, difference.loss);
    difference.gradient_norm = std::max(norm, difference.gradient_norm);
  }
  return difference;
}

}  // namespace ridgeline::cli
