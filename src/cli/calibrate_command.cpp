// ridgeline calibrate: a machine file whose constants are fitted to recorded runs.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/print_json.h"
#include "core/error.h"
#include "core/output_file.h"
#include "core/text.h"
#include "simulate/calibration.h"
#include "simulate/validation.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;

struct Arguments {
  std::vector<std::string> from;
  std::string machine;
  std::string write;
  int64_t hold_out = 0;
  bool only_constants = false;
  double noise = 0.03;
  bool wants_json = false;
};

struct Errors {
  simulate::Accuracy before, after;
};

std::vector<simulate::MeasuredRun> read_runs(const Arguments& arguments) {
  std::vector<simulate::MeasuredRun> runs;
  for (const std::string& path : arguments.from) {
    for (simulate::MeasuredRun& run : simulate::measured_runs(simulate::read_table(path))) runs.push_back(std::move(run));
  }
  // Rows of other machines say nothing of this one; where no row names it, all are taken as its.
  const auto is_here = [&](const simulate::MeasuredRun& run) { return run.machine == arguments.machine; };
  if (std::any_of(runs.begin(), runs.end(), is_here)) std::erase_if(runs, std::not_fn(is_here));
  return runs;
}

simulate::Accuracy accuracy(const std::vector<simulate::MeasuredRun>& runs, const spec::Machine& machine) {
  return simulate::accuracies(simulate::validate_runs(runs, machine)).back();
}

json to_json(const simulate::Accuracy& accuracy) {
  return {{"runs", accuracy.predicted},
          {"mean_absolute_error", accuracy.mean_absolute_error},
          {"p95_absolute_error", accuracy.p95_absolute_error},
          {"kendall_tau", accuracy.kendall_tau ? json(*accuracy.kendall_tau) : json()},
          {"regret", accuracy.regret ? json(*accuracy.regret) : json()}};
}

std::string describe(const simulate::Accuracy& accuracy) {
  std::string text = fmt::format("{:5} runs  {:5.1f} % mean  {:5.1f} % at 95 of 100", accuracy.predicted,
                                 100 * accuracy.mean_absolute_error, 100 * accuracy.p95_absolute_error);
  if (accuracy.kendall_tau) text += fmt::format("  tau {:.2f}", *accuracy.kendall_tau);
  if (accuracy.regret) text += fmt::format("  regret {:.1f} %", 100 * *accuracy.regret);
  return text;
}

// Posterior close to prior: nothing in these runs depends on it.
constexpr double kUndetermined = 0.2;

void print(const simulate::Calibration& fit, const std::vector<std::pair<std::string, Errors>>& errors) {
  fmt::print("{:30} {:>10} {:>10}   {:>9} {:>9}\n", "[stack]", "before", "after", "from", "to");
  for (const simulate::FittedConstant& constant : fit.constants) {
    fmt::print("{:30} {:10.4g} {:10.4g}   ", constant.name, constant.before, constant.after);
    if (constant.determined < kUndetermined) {
      fmt::print("not told by these runs\n");
    } else {
      fmt::print("{:9.3g} {:9.3g}\n", constant.low, constant.high);
    }
  }
  fmt::print("\n{} rates of products and {} of collectives\n\n", fit.machine.shapes.products.size(),
             fit.machine.shapes.collectives.size());
  for (const auto& [name, error] : errors) {
    fmt::print("{:9} before {}\n{:9} after  {}\n", name, describe(error.before), "", describe(error.after));
  }
}

json to_json(const simulate::Calibration& fit, const std::vector<std::pair<std::string, Errors>>& errors) {
  json document;
  for (const simulate::FittedConstant& constant : fit.constants) {
    document["constants"].push_back({{"name", constant.name},
                                     {"before", constant.before},
                                     {"after", constant.after},
                                     {"low", constant.low},
                                     {"high", constant.high},
                                     {"determined", constant.determined},
                                     {"is_determined", constant.determined >= kUndetermined}});
  }
  document["runs"] = fit.runs;
  document["product_shapes"] = fit.machine.shapes.products.size();
  document["collective_shapes"] = fit.machine.shapes.collectives.size();
  for (const auto& [name, error] : errors) {
    document[name] = {{"before", to_json(error.before)}, {"after", to_json(error.after)}};
  }
  return document;
}

int calibrate(const Arguments& arguments) {
  const spec::Machine machine = spec::load_machine(arguments.machine);
  std::vector<simulate::MeasuredRun> fitted, held;
  std::vector<simulate::MeasuredRun> runs = read_runs(arguments);
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool holds = arguments.hold_out > 1 && i % static_cast<size_t>(arguments.hold_out) == 1;
    (holds ? held : fitted).push_back(std::move(runs[i]));
  }
  simulate::CalibrationOptions options;
  options.fits_shapes = !arguments.only_constants;
  options.noise = arguments.noise;
  const simulate::Calibration fit = simulate::calibrate(fitted, machine, options);
  std::vector<std::pair<std::string, Errors>> errors;
  errors.push_back({"fitted", {accuracy(fitted, machine), accuracy(fitted, fit.machine)}});
  if (!held.empty()) errors.push_back({"held_out", {accuracy(held, machine), accuracy(held, fit.machine)}});
  if (!arguments.write.empty()) {
    const std::string name = std::filesystem::path(arguments.write).stem().string();
    const std::string text = simulate::machine_toml(fit, name, arguments.machine, machine.stack.name + ", calibrated");
    OutputFile file(arguments.write);
    file.write_array(std::span<const char>(text));
    file.publish();
  }
  arguments.wants_json ? print_json(to_json(fit, errors)) : print(fit, errors);
  if (!arguments.write.empty() && !arguments.wants_json) fmt::print("\nWritten to {}\n", arguments.write);
  return kDone;
}

}  // namespace

void add_calibrate_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("calibrate", "Fit a machine file's constants to recorded runs");
  command->add_option("--from", arguments->from, "CSV of runs, as `validate` takes; may be repeated")->required();
  command->add_option("--machine", arguments->machine, "machine to start from")->required();
  command->add_option("--write", arguments->write, "machine file to write");
  command->add_option("--hold-out", arguments->hold_out, "keep every N-th run out of the fit, and tell its error")
      ->check(CLI::Range(int64_t{2}, int64_t{1000}));
  command->add_option("--noise", arguments->noise, "of a recorded step time, share of it")
      ->check(CLI::Range(0.001, 1.0));
  command->add_flag("--only-constants", arguments->only_constants, "no rates of single shapes");
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->footer(
      "Example:\n  ridgeline calibrate --from runs.csv --machine dgx-h100 --hold-out 2 --write my-h100.toml");
  command->callback([arguments, &exit_code] { exit_code = calibrate(*arguments); });
}

}  // namespace ridgeline::cli
