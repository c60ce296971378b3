// ridgeline scale: weak and strong scaling of a strategy, by runs or by the simulator.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/plan_arguments.h"
#include "cli/print_json.h"
#include "cli/scale_output.h"
#include "cli/set_option.h"
#include "cli/study_runs.h"
#include "cli/tune_progress.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "study/random_tokens.h"
#include "study/tuner.h"

namespace ridgeline::cli {
namespace {

struct Arguments {
  std::string study;
  std::vector<std::string> sets;
  std::vector<int64_t> devices;
  bool is_weak = false;
  bool is_strong = false;
  bool wants_best = false;
  bool wants_json = false;
  bool wants_status = false;
  bool wants_keys = false;
  std::string format;  // of --export
};

study::ScaleFile file_of(const Arguments& arguments) {
  std::vector<std::string> sets = arguments.sets;
  if (arguments.is_weak) sets.push_back("scale.kind=weak");
  if (arguments.is_strong) sets.push_back("scale.kind=strong");
  if (arguments.wants_best) sets.push_back("scale.replan=true");
  if (!arguments.devices.empty()) sets.push_back(fmt::format("scale.devices=[{}]", fmt::join(arguments.devices, ", ")));
  return study::load_scale_file(arguments.study, sets, load_model);
}

// Those asked for, and those of the store: what was run before stays in the table.
std::vector<int64_t> devices_of(const study::ScaleFile& file) {
  std::set<int64_t> devices(file.scale.devices.begin(), file.scale.devices.end());
  if (std::filesystem::exists(file.study.store)) {
    study::StudyStore store(file.study.store);
    for (const study::TrialRecord& trial : store.trials()) {
      const auto numbers = search::numbers_of_key(trial.point);
      if (numbers.count("devices") > 0) devices.insert(static_cast<int64_t>(numbers.at("devices")));
    }
  }
  return {devices.begin(), devices.end()};
}

void print(const Arguments& arguments, const study::ScaleFile& file, const study::Problem& problem,
           study::StudyStore& store) {
  const study::ScaleResult result = study::scale_result(file, problem, store.trials(), store.runs());
  const ScaleView view{file, problem, result};
  if (arguments.wants_json) {
    print_json(scale_json(view));
  } else if (arguments.format == "csv") {
    fmt::print("{}", scale_csv(view));
  } else {
    fmt::print("{}", scale_summary(view));
  }
}

int scale(const Arguments& arguments, const study::ScaleFile& file, study::Problem& problem) {
  const std::string& path = file.study.store;
  const std::unique_ptr<study::Executor> executor = executor_of(problem);
  const FileLock lock = lock_store(path);
  study::StudyStore store(path, problem.identity());
  study::ensure_random_tokens(problem);
  study::TuneEnd end = study::TuneEnd::budget;
  {
    TuneProgress progress(problem, TuneProgress::can_redraw(), TuneProgress::Names::no_best);
    auto points = std::make_unique<study::InOrder>(problem.points().size());
    end = study::Tuner(problem, store, std::move(points), executor.get(), progress, this_program()).run();
  }
  if (end == study::TuneEnd::interrupted) {
    spdlog::warn("asked to stop: {} holds what was measured; the same command goes on", path);
    return kInterrupted;
  }
  print(arguments, file, problem, store);
  return kDone;
}

int run(const Arguments& arguments) {
  if (arguments.wants_keys) {
    fmt::print("{}", study::scale_keys());
    return kDone;
  }
  set_up_log();
  if (arguments.study.empty()) throw InputError("STUDY is missing: expected a scaling file (see docs/scaling.md)");
  const study::ScaleFile file = file_of(arguments);
  study::Problem problem(file.study, file.train, study::scale_points(file, devices_of(file)));
  if (!arguments.wants_status && arguments.format.empty()) return scale(arguments, file, problem);
  if (!std::filesystem::exists(file.study.store)) {
    throw InputError("{}: there is no such study yet; the command without --status and --export begins it",
                     file.study.store);
  }
  study::StudyStore store(file.study.store);
  print(arguments, file, problem, store);
  return kDone;
}

}  // namespace

void add_scale_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("scale", "Weak or strong scaling of a strategy, measured or simulated");
  command->add_option("STUDY", arguments->study, "scaling file (TOML); --keys lists its keys");
  CLI::Option* weak = command->add_flag("--weak", arguments->is_weak, "the batch grows with the devices");
  command->add_flag("--strong", arguments->is_strong, "the batch stays")->excludes(weak);
  command->add_option("--devices", arguments->devices, "numbers of devices: 8,16,32")
      ->delimiter(',')
      ->check(CLI::Range(1, 1000000));
  command->add_flag("--best", arguments->wants_best,
                    "plan each point anew, in place of one strategy with a growing data axis");
  add_set_option(*command, arguments->sets, "the file");
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->add_flag("--status", arguments->wants_status, "show what there is, also beside a study at work");
  command->add_option("--export", arguments->format, "print all points: csv")->check(CLI::IsMember({"csv"}));
  command->add_flag("--keys", arguments->wants_keys, "list the keys of a scaling file");
  command->footer(
      "Examples:\n"
      "  ridgeline scale examples/scale-frontier-175b.toml --strong\n"
      "  ridgeline scale scale.toml --weak --devices 8,16,32\n"
      "Stopped or killed, the same command goes on where it was.");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace ridgeline::cli
