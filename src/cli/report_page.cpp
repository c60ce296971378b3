#include "cli/report_page.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <ctime>

#include "cli/plan_arguments.h"
#include "cli/report_layout.h"
#include "cli/report_run.h"
#include "cli/report_study.h"
#include "core/error.h"
#include "core/json_input.h"
#include "core/output_file.h"
#include "core/text.h"
#include "core/text_file.h"
#include "report/page/page.h"
#include "spec/config.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;
using Kind = ReportSubject::Kind;

// Rows of all curves of a page together: some 100 bytes each.
constexpr size_t kAllRows = 8000;
constexpr size_t kMostRows = 2000;
constexpr size_t kFewestRows = 100;
constexpr size_t kLargestDocument = size_t{64} << 20;

json run_json(const ReportSubject& subject, const PageRequest& request, size_t most_rows) {
  const ReportedRun run = read_run(subject.name, subject.path, most_rows);
  json document = summary_json(run.name, run.summary);
  document.erase("held_out");  // it is a curve here
  document["curves"] = run.curves;
  if (!run.config) {
    document["note"] = run.config_note;
    return document;
  }
  document["settings"] = settings_json(spec::to_toml(*run.config));
  document["devices"] = run.config->strategy.ranks();
  document["layout"] = layout_json(*run.config, request.machine, cost::recipe(request.program));
  return document;
}

json config_json(const ReportSubject& subject, const PageRequest& request) {
  AnyConfig config = load_any_config(subject.path, {});
  spec::TrainSpec& train = config.train.spec;
  if (!config.missing.empty()) throw InputError("{}: {}", subject.path, config.missing.front());
  const int64_t known = request.devices > 0 ? request.devices : config.devices;
  const int64_t ranks = known > 0 ? known : train.strategy.tensor * train.strategy.pipeline;
  config.train.sources.located([&] { spec::derive_data(train.strategy, train.model, ranks); });
  return {{"name", subject.name},
          {"settings", settings_json(spec::to_toml(train))},
          {"layout", layout_json(train, request.machine, cost::recipe(request.program))}};
}

// What a command printed, into the part of the page that shows it.
void add_document(const ReportSubject& subject, json& data) {
  const std::string text = read_text_file(subject.path, "what a command printed for --json", kLargestDocument);
  json document = parse_json(text, subject.path);
  const auto has = [&](std::initializer_list<const char*> keys) {
    return document.is_object() &&
           std::all_of(keys.begin(), keys.end(), [&](const char* key) { return document.contains(key); });
  };
  if (has({"strategy", "stages", "time", "step_seconds"})) {
    data["layouts"].push_back({{"name", subject.name}, {"layout", std::move(document)}});
  } else if (has({"kind", "points", "fit", "critical_batch"})) {
    data["scales"].push_back({{"name", subject.name}, {"document", std::move(document)}});
  } else if (has({"days", "hours", "node_hours", "energy_mwh"})) {
    data["projections"].push_back({{"name", subject.name}, {"document", std::move(document)}});
  } else {
    throw InputError("{}: expected what `ridgeline simulate --json`, `scale --json` or `project --json` printed",
                     subject.path);
  }
}

std::string title_of(const std::vector<ReportSubject>& subjects) {
  std::vector<std::string> names;
  for (const ReportSubject& subject : subjects) names.push_back(subject.name);
  if (names.size() <= 3) return join(names);
  return fmt::format("{} and {} more", names.front(), names.size() - 1);
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

}  // namespace

void write_report_page(const PageRequest& request) {
  const auto runs = static_cast<size_t>(std::count_if(request.subjects.begin(), request.subjects.end(),
                                                      [](const auto& subject) { return subject.kind == Kind::run; }));
  const size_t rows = std::clamp(kAllRows / std::max<size_t>(runs, 1), kFewestRows, kMostRows);
  const std::string title = title_of(request.subjects);
  json data = {{"title", title},
               {"made", now_text()},
               {"program", "ridgeline " RIDGELINE_VERSION},
               {"runs", json::array()},
               {"studies", json::array()},
               {"layouts", json::array()},
               {"scales", json::array()},
               {"projections", json::array()},
               {"machine", request.machine ? machine_json(*request.machine) : json()}};
  for (const ReportSubject& subject : request.subjects) {
    switch (subject.kind) {
      case Kind::run:
        data["runs"].push_back(run_json(subject, request, rows));
        break;
      case Kind::study:
        data["studies"].push_back(study_report_json(subject.path));
        break;
      case Kind::config:
        data["layouts"].push_back(config_json(subject, request));
        break;
      case Kind::document:
        add_document(subject, data);
        break;
    }
  }
  const std::string html = report::page_html(title, data);
  write_whole_file(request.output, html);
  spdlog::info("wrote {} ({})", request.output, format_bytes(static_cast<double>(html.size())));
}

}  // namespace ridgeline::cli
