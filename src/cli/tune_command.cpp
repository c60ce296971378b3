// ridgeline tune: the best strategy by trials.
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/print_json.h"
#include "cli/set_option.h"
#include "cli/study_problem.h"
#include "cli/study_runs.h"
#include "cli/tune_output.h"
#include "cli/tune_progress.h"
#include "core/error.h"
#include "core/log.h"
#include "core/output_file.h"
#include "study/learned_machine.h"
#include "study/random_tokens.h"
#include "study/tuner.h"
#include "study/warm_start.h"

namespace ridgeline::cli {
namespace {

constexpr size_t kTop = 5;

struct Arguments {
  std::string study;
  std::vector<std::string> sets;
  bool wants_json = false;
  bool wants_status = false;
  bool wants_keys = false;
  size_t top = 0;
  std::string format;  // of --export
};

void print(const Arguments& arguments, const study::Problem& problem, study::StudyStore& store) {
  const auto trials = store.trials();
  const auto runs = store.runs();
  const study::Result result = study::result_of(problem, trials, runs);
  const StudyView view{problem, trials, runs, result};
  if (arguments.wants_json) {
    print_json(study_json(view));
  } else if (arguments.format == "csv") {
    fmt::print("{}", study_csv(view));
  } else if (arguments.top > 0) {
    fmt::print("{}", top_table(view, arguments.top));
  } else {
    fmt::print("{}", study_summary(view, kTop));
  }
}

void write_best(const study::Problem& problem, study::StudyStore& store) {
  const study::Result result = study::result_of(problem, store.trials(), store.runs());
  const std::string text = study::best_config(problem, result);
  if (text.empty()) {
    if (result.best) spdlog::warn("{} is not written: `train` cannot run the best yet", problem.file().best);
    return;
  }
  OutputFile file(problem.file().best);
  file.write_array(std::span<const char>(text));
  file.publish();
  spdlog::info("wrote {}", problem.file().best);
}

void write_learned(const study::Problem& problem, study::StudyStore& store) {
  const std::string& path = problem.file().learned;
  if (path.empty()) return;
  const study::LearnedMachine learned = study::learn_machine(problem, store.trials());
  if (learned.trials == 0) {
    spdlog::warn("{} is not written: it needs a machine and three trials that ended well", path);
    return;
  }
  const std::string text = study::to_toml(learned, problem);
  OutputFile file(path);
  file.write_array(std::span<const char>(text));
  file.publish();
  spdlog::info("wrote {}: predictions of these trials were off by {:.1f} %, with it by {:.1f} %", path,
               100 * learned.error_before, 100 * learned.error_after);
}

int tune(const Arguments& arguments) {
  set_up_log();
  study::Problem problem = load_problem(arguments.study, arguments.sets);
  const std::string& path = problem.file().store;
  const std::unique_ptr<study::Executor> executor = executor_of(problem);
  const FileLock lock = lock_store(path);
  study::StudyStore store(path, problem.identity(), [&] { return study::beginning_of(problem); });
  study::ensure_random_tokens(problem);
  study::TuneEnd end = study::TuneEnd::budget;
  {
    TuneProgress progress(problem, TuneProgress::can_redraw());
    auto search = std::make_unique<study::Searched>(problem.make_searcher(store.earlier()));
    end = study::Tuner(problem, store, std::move(search), executor.get(), progress, this_program()).run();
  }
  if (end == study::TuneEnd::interrupted) {
    spdlog::warn("asked to stop: {} holds all trials; the same command goes on", path);
    return kInterrupted;
  }
  if (end == study::TuneEnd::exhausted) spdlog::info("no point is left to try");
  write_best(problem, store);
  write_learned(problem, store);
  print(arguments, problem, store);
  return kDone;
}

int run(const Arguments& arguments) {
  if (arguments.wants_keys) {
    fmt::print("{}", study::study_keys());
    return kDone;
  }
  if (arguments.study.empty()) throw InputError("STUDY is missing: expected a study file (see docs/tune.md)");
  const bool only_shows = arguments.wants_status || arguments.top > 0 || !arguments.format.empty();
  if (!only_shows) return tune(arguments);
  const study::Problem problem = load_problem(arguments.study, arguments.sets);
  if (!std::filesystem::exists(problem.file().store)) {
    throw InputError("{}: there is no such study yet; `ridgeline tune {}` begins it", problem.file().store,
                     arguments.study);
  }
  study::StudyStore store(problem.file().store);
  print(arguments, problem, store);
  return kDone;
}

}  // namespace

void add_tune_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("tune", "Find the best strategy by trials, or go on with a study");
  command->add_option("STUDY", arguments->study, "study file (TOML); --keys lists its keys");
  add_set_option(*command, arguments->sets, "the file");
  command->add_flag("--json", arguments->wants_json, "print one JSON document");
  command->add_flag("--status", arguments->wants_status, "show the study as it is, also beside a tuner at work");
  command->add_option("--top", arguments->top, "show the best N trials")->type_name("N")->check(CLI::Range(1, 1000000));
  command->add_option("--export", arguments->format, "print all trials: csv")->check(CLI::IsMember({"csv"}));
  command->add_flag("--keys", arguments->wants_keys, "list the keys of a study file");
  command->footer(
      "Examples:\n"
      "  ridgeline tune study.toml\n"
      "  ridgeline tune study.toml --status\n"
      "  ridgeline tune study.toml --set budget.trials=100\n"
      "Stopped or killed, the same command goes on where it was.");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace ridgeline::cli
