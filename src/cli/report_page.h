// The HTML page of `ridgeline report`: gathers what is known of runs, studies, configs and documents for
// report/page/page.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/report_subject.h"
#include "spec/machine.h"

namespace ridgeline::cli {

struct PageRequest {
  std::vector<ReportSubject> subjects;
  std::optional<spec::Machine> machine;  // predictions are for it
  std::string program;                   // whose recipe predicts
  int64_t devices = 0;                   // of configs; 0: one replica
  std::string output;
};

void write_report_page(const PageRequest& request);

}  // namespace ridgeline::cli
