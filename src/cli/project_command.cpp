// ridgeline project: what a whole training takes, from short runs or from a prediction.
#include <memory>

#include "cli/commands.h"
#include "cli/guarded.h"
#include "cli/project_output.h"
#include "core/error.h"
#include "core/log.h"
#include "project/quantity.h"

namespace ridgeline::cli {
namespace {

constexpr size_t kOptions = 8;
constexpr int64_t kMostNodes = 4096;  // where the machine's size is not known

int project_training(const ProjectArguments& arguments) {
  set_up_log();
  ProjectQuestion question = question_of(arguments);
  ProjectAnswer answer;
  answer.projection = project::project(question.steps, question.conditions);
  const bool can_move = question.machine && question.steps.can_predict();
  const int64_t most_nodes = can_move && question.machine->nodes > 0 ? question.machine->nodes : kMostNodes;
  if (can_move) answer.options = project::options(question.steps, question.conditions, most_nodes, kOptions);
  if (!arguments.deadline.empty()) {
    if (!can_move) throw InputError("--deadline: other numbers of nodes need a prediction; add --machine");
    answer.deadline_days = project::parse_seconds(arguments.deadline, "--deadline") / 86400;
    answer.fewest =
        project::fewest_nodes(question.steps, question.conditions, most_nodes, *answer.deadline_days, arguments.surely);
  }
  if (arguments.budget > 0) {
    answer.budget = arguments.budget;
    answer.tokens_of_budget = project::most_tokens(question.steps, question.conditions, arguments.budget);
  }
  if (arguments.wants_json) {
    print_document(question, answer);
  } else {
    print_text(question, answer);
  }
  return kDone;
}

}  // namespace

void add_project_command(CLI::App& program, int& exit_code) {
  auto arguments = std::make_shared<ProjectArguments>();
  CLI::App* command =
      program.add_subcommand("project", "Days, node-hours, energy and cost of a whole training, from short runs");
  arguments->add_to(*command);
  command->footer(
      "Examples:\n"
      "  ridgeline project runs/short --tokens 1T\n"
      "  ridgeline project runs/a runs/b --tokens 300B --machine frontier --nodes 256 --deadline 30d\n"
      "  ridgeline project run.toml --machine frontier --nodes 384 --walltime 12h --queue-wait 8h");
  command->callback([arguments, &exit_code] { exit_code = project_training(*arguments); });
}

}  // namespace ridgeline::cli
