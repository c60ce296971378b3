// ridgeline parity: trains the same model for some steps under several layouts, and shows how far they are apart.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/find_engine.h"
#include "cli/guarded.h"
#include "cli/parity_layouts.h"
#include "cli/print_json.h"
#include "cli/train_arguments.h"
#include "core/error.h"
#include "core/log.h"
#include "launch/environment.h"
#include "launch/local.h"

namespace ridgeline::cli {
namespace {

struct Arguments {
  TrainArguments train;
  std::string layouts;
  int64_t steps = 20;
  double loss_bound = 0;  // 0: by precision
  double norm_bound = 0;
  bool wants_json = false;
};

// Runs of this command alone; removed at its end.
class RunsFolder {
 public:
  RunsFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ridgeline-parity-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw Failure("{}: no folder can be made there; free space, or set TMPDIR to another one", pattern);
    }
    path_ = pattern;
  }
  ~RunsFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  RunsFolder(const RunsFolder&) = delete;
  RunsFolder& operator=(const RunsFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

struct Result {
  ParityLayout layout;
  ParityRun run;
  ParityDifference difference;  // from the first
};

ParityRun train(const Arguments& arguments, const ParityLayout& layout, const std::filesystem::path& folder) {
  TrainArguments words = arguments.train;
  words.sets.insert(words.sets.end(), layout.sets.begin(), layout.sets.end());
  for (const std::string& last : {"training.run=\"" + folder.string() + "\"", fmt::format("training.steps={}", arguments.steps),
                                  std::string("checkpoint.every=0"), std::string("checkpoint.at_end=false")}) {
    words.sets.push_back(last);
  }
  spdlog::info("layout {} on {} rank{}", layout.text, layout.ranks, layout.ranks == 1 ? "" : "s");
  std::vector<std::string> command = {find_engine()};
  for (const std::string& word : engine_words(words)) command.push_back(word);
  const int code = launch::run_local_ranks({.command = command, .ranks = layout.ranks});
  if (code != kDone) throw Failure("layout {}: its training ended with code {}; see above", layout.text, code);
  return read_parity_run((folder / "metrics.jsonl").string(), arguments.steps);
}

void print_table(const std::vector<Result>& results, const ParityBounds& bounds, int64_t steps) {
  size_t width = 8;
  for (const Result& result : results) width = std::max(width, result.layout.text.size());
  fmt::print("{:<{}} {:>5} {:>12} {:>12} {:>7}\n", "layout", width, "ranks", "loss", "grad norm", "at step");
  for (const Result& result : results) {
    const ParityDifference& difference = result.difference;
    if (&result == &results.front()) {
      fmt::print("{:<{}} {:>5} {:>12} {:>12}\n", result.layout.text, width, result.layout.ranks, "reference", "reference");
    } else {
      fmt::print("{:<{}} {:>5} {:>12.1e} {:>12.1e} {:>7}{}\n", result.layout.text, width, result.layout.ranks,
                 difference.loss, difference.gradient_norm, difference.step, difference.within ? "" : "  DIFFERS");
    }
  }
  fmt::print("Largest relative differences over {} steps; bounds are {:.0e} for losses, {:.0e} for gradient norms.\n", steps,
             bounds.loss, bounds.gradient_norm);
}

void print_document(const std::vector<Result>& results, const ParityBounds& bounds, int64_t steps) {
  nlohmann::json layouts = nlohmann::json::array();
  for (const Result& result : results) {
    layouts.push_back({{"layout", result.layout.text},
                       {"ranks", result.layout.ranks},
                       {"loss_difference", result.difference.loss},
                       {"grad_norm_difference", result.difference.gradient_norm},
                       {"step", result.difference.step},
                       {"within", result.difference.within},
                       {"losses", result.run.losses},
                       {"grad_norms", result.run.gradient_norms}});
  }
  print_json({{"steps", steps}, {"loss_bound", bounds.loss}, {"grad_norm_bound", bounds.gradient_norm}, {"layouts", layouts}});
}

int run(const Arguments& arguments) {
  if (launch::detect().world > 1) throw InputError("parity starts its ranks itself; run it without a launcher");
  set_up_log(0, 1);
  const std::vector<ParityLayout> layouts =
      parse_parity_layouts(arguments.layouts, arguments.train.config, arguments.train.sets);
  const spec::TrainSpec spec = spec::load_train_spec(arguments.train.config, arguments.train.sets).spec;
  ParityBounds bounds = parity_bounds(to_string(spec.precision.compute));
  if (arguments.loss_bound > 0) bounds.loss = arguments.loss_bound;
  if (arguments.norm_bound > 0) bounds.gradient_norm = arguments.norm_bound;
  const RunsFolder folder;
  std::vector<Result> results;
  bool within = true;
  for (const ParityLayout& layout : layouts) {
    Result result{layout, train(arguments, layout, folder / std::to_string(results.size())), {}};
    if (!results.empty()) result.difference = compare(result.run, results.front().run, bounds);
    within = within && result.difference.within;
    results.push_back(std::move(result));
  }
  if (arguments.wants_json) {
    print_document(results, bounds, arguments.steps);
  } else {
    print_table(results, bounds, arguments.steps);
  }
  return within ? kDone : kFailed;
}

}  // namespace

void add_parity_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("parity", "Check on this machine that layouts change nothing but speed");
  add_train_arguments(*command, arguments->train);
  command->add_option("--layouts", arguments->layouts,
                      "strategy keys and data=N, with commas; a ; between layouts, the first of which is the reference")
      ->required();
  command->add_option("--steps", arguments->steps, "steps of each")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  command->add_option("--loss-bound", arguments->loss_bound, "largest relative difference of losses (by precision)")
      ->check(CLI::PositiveNumber);
  command->add_option("--norm-bound", arguments->norm_bound, "the same for gradient norms")->check(CLI::PositiveNumber);
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->footer(
      "Example:\n"
      "  ridgeline parity run.toml --layouts \"data=1; tensor=2,pipeline=2; data=4,zero_stage=3\"");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace ridgeline::cli
