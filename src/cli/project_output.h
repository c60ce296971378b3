// How `project` shows its answer.
#pragma once

#include <optional>
#include <vector>

#include "cli/project_arguments.h"
#include "project/what_if.h"

namespace ridgeline::cli {

struct ProjectAnswer {
  project::Projection projection;
  std::vector<project::Option> options;
  std::optional<double> deadline_days;
  std::optional<project::Option> fewest;  // nodes for the deadline; none: not with any
  std::optional<double> budget;
  double tokens_of_budget = 0;
};

void print_text(const ProjectQuestion& question, const ProjectAnswer& answer);
void print_document(const ProjectQuestion& question, const ProjectAnswer& answer);

}  // namespace ridgeline::cli
