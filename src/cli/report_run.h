// A run for a report: what its metrics.jsonl comes to, its curves, and its config.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "report/history.h"
#include "report/summary.h"
#include "spec/train.h"

namespace ridgeline::cli {

struct ReportedRun {
  std::string name;  // as it was given
  report::RunSummary summary;
  nlohmann::json curves;                  // of report::RunHistory
  std::optional<spec::TrainSpec> config;  // of config.toml beside the metrics, `strategy.data` derived
  std::string config_note;                // why there is none
};

// Reads as it goes, in at most `most_rows` rows; on stderr how far it is, where it takes long. Throws InputError where
// the file is none or holds no step.
ReportedRun read_run(const std::string& name, const std::string& metrics_path, size_t most_rows);

// The document of `report --json`.
nlohmann::json summary_json(const std::string& name, const report::RunSummary& summary);

}  // namespace ridgeline::cli
