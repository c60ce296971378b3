#include "spec/train.h"

#include <charconv>
#include <string_view>

#include "core/error.h"
#include "spec/config.h"

namespace ridgeline::spec {
namespace {

void validate_optimizer(const OptimizerSpec& optimizer, int64_t steps) {
  if (optimizer.decay != DecayKind::constant && optimizer.min_lr > optimizer.lr) {
    throw InputError("optimizer.min_lr = {}: larger than optimizer.lr = {}; lower it, or set decay = \"constant\"",
                     optimizer.min_lr, optimizer.lr);
  }
  const int64_t decay_steps = optimizer.decay_steps > 0 ? optimizer.decay_steps : steps;
  if (optimizer.decay != DecayKind::constant && optimizer.warmup_steps > decay_steps) {
    throw InputError("optimizer.warmup_steps = {}: longer than the whole schedule of {} steps ({})",
                     optimizer.warmup_steps, decay_steps,
                     optimizer.decay_steps > 0 ? "optimizer.decay_steps" : "training.steps");
  }
}

// Tokens are counted in 64 bits.
void validate_counts(const TrainSpec& spec) {
  constexpr double most = 4e18;
  const double sequence = static_cast<double>(spec.model.sequence);
  const double tokens =
      static_cast<double>(spec.training.steps) * static_cast<double>(spec.strategy.global_batch) * sequence;
  if (tokens > most) {
    throw InputError(
        "training.steps = {}: with {} samples of {} tokens a step that is {:.1e} tokens, expected at most "
        "{:.0e}; lower training.steps",
        spec.training.steps, spec.strategy.global_batch, spec.model.sequence, tokens, most);
  }
  if (static_cast<double>(spec.evaluation.samples) * sequence > most) {
    throw InputError("evaluation.samples = {}: of {} tokens each, that is more than {:.0e} tokens; lower it",
                     spec.evaluation.samples, spec.model.sequence, most);
  }
}

std::optional<int64_t> parse_step(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

}  // namespace

std::optional<StepRange> profile_range(const TrainingSpec& training) {
  constexpr int64_t most = 100;
  const std::string_view text(training.profile_steps);
  if (text.empty()) return std::nullopt;
  const size_t colon = text.find(':');
  const auto first = parse_step(text.substr(0, colon));
  const auto last = colon == std::string_view::npos ? first : parse_step(text.substr(colon + 1));
  if (!first || !last || *first > *last) {
    throw InputError(
        "training.profile_steps = \"{}\": expected FIRST:LAST, the numbers of the first and the last step to trace, "
        "such as 10:12",
        text);
  }
  if (*last - *first >= most) {
    throw InputError("training.profile_steps = \"{}\": {} steps make a trace that no viewer opens; expected at most {}",
                     text, *last - *first + 1, most);
  }
  if (*last > training.steps) {
    throw InputError(
        "training.profile_steps = \"{}\": training ends with step training.steps = {}; expected one before", text,
        training.steps);
  }
  return StepRange{*first, *last};
}

void validate(const TrainSpec& spec) {
  validate(spec.model);
  validate_counts(spec);
  validate_optimizer(spec.optimizer, spec.training.steps);
  if (spec.evaluation.every > 0 && spec.data.validation_path.empty() && spec.data.validation_fraction == 0) {
    throw InputError(
        "evaluation.every = {}: nothing is held out: set data.validation_path or a "
        "data.validation_fraction above 0",
        spec.evaluation.every);
  }
  profile_range(spec.training);
  if (spec.training.run.empty()) throw InputError("training.run = '': expected the path of the run folder");
}

std::string to_string(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
  }
  throw InternalError("Precision {}", static_cast<int>(precision));
}

std::string to_string(DecayKind kind) {
  switch (kind) {
    case DecayKind::constant:
      return "constant";
    case DecayKind::cosine:
      return "cosine";
    case DecayKind::linear:
      return "linear";
    case DecayKind::warmup_stable_decay:
      return "warmup_stable_decay";
  }
  throw InternalError("DecayKind {}", static_cast<int>(kind));
}

}  // namespace ridgeline::spec
