#include "cli/validate_full_runs.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/guarded.h"
#include "cli/print_json.h"
#include "core/text.h"
#include "project/full_runs.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;
using project::FullRun;

json number(const std::optional<double>& value) { return value ? json(*value) : json(); }

json range(const project::Range& value) { return {{"low", value.low}, {"middle", value.middle}, {"high", value.high}}; }

json row_json(const FullRun& run) {
  json row = {{"model", run.label},
              {"source", run.source},
              {"machine", run.machine},
              {"from", run.from_rate ? "published rate" : "prediction"},
              {"aside", run.aside},
              {"reported",
               {{"device_hours", number(run.device_hours)},
                {"days", number(run.days)},
                {"energy_mwh", number(run.energy_mwh)}}}};
  if (!run.projection) {
    row["why_not"] = run.why_not;
    return row;
  }
  row["projected"] = {{"device_hours", range(run.projection->device_hours)},
                      {"days", range(run.projection->days)},
                      {"energy_mwh", run.projected_energy() ? range(*run.projected_energy()) : json()}};
  row["error"] = {{"device_hours", number(run.device_hours_error())},
                  {"days", number(run.days_error())},
                  {"energy_mwh", number(run.energy_error())}};
  return row;
}

std::string cell(const std::optional<double>& reported, double projected, const std::optional<double>& error) {
  const auto text = [](double value) { return value >= 1e4 ? format_count(value) : fmt::format("{:.3g}", value); };
  if (!reported || !error) return "";
  return fmt::format("{:>8} {:>8} {:+6.1f}%", text(*reported), text(projected), 100 * *error);
}

void print_row(const FullRun& run) {
  if (!run.projection) {
    fmt::print("{:26.26} {}: not projected: {}\n", run.label, run.machine, run.why_not);
    return;
  }
  const std::string energy =
      run.projected_energy() ? cell(run.energy_mwh, run.projected_energy()->middle, run.energy_error()) : "";
  fmt::print("{:26.26} {:4} {:5} | {:25} | {:25} | {:25}\n", run.label, run.from_rate ? "rate" : "pred",
             run.aside ? "aside" : "fit",
             cell(run.device_hours, run.projection->device_hours.middle, run.device_hours_error()),
             cell(run.days, run.projection->days.middle, run.days_error()), energy);
}

struct Summary {
  int64_t rows = 0;
  double sum = 0, worst = 0;
  void add(const std::optional<double>& error) {
    if (!error) return;
    ++rows;
    sum += std::abs(*error);
    worst = std::max(worst, std::abs(*error));
  }
  json to_json() const {
    if (rows == 0) return {{"rows", 0}};
    return {{"rows", rows}, {"mean_absolute_error", sum / static_cast<double>(rows)}, {"largest_error", worst}};
  }
  void print(const char* name) const {
    if (rows == 0) return;
    fmt::print("{:34} {:3} rows, mean error {:.1f} %, largest {:.1f} %\n", name, rows,
               100 * sum / static_cast<double>(rows), 100 * worst);
  }
};

}  // namespace

int validate_full_runs(const std::string& file, bool wants_json) {
  const std::vector<FullRun> runs = project::full_runs(simulate::read_table(file));
  Summary hours[2], days, energy;  // hours: by prediction, by rate
  for (const FullRun& run : runs) {
    if (!run.aside) continue;
    hours[run.from_rate ? 1 : 0].add(run.device_hours_error());
    days.add(run.days_error());
    energy.add(run.energy_error());
  }
  if (wants_json) {
    json document;
    document["runs"] = json::array();
    for (const FullRun& run : runs) document["runs"].push_back(row_json(run));
    document["aside"] = {{"device_hours_by_prediction", hours[0].to_json()},
                         {"device_hours_by_rate", hours[1].to_json()},
                         {"days", days.to_json()},
                         {"energy_mwh", energy.to_json()}};
    print_json(document);
    return kDone;
  }
  fmt::print("{:26} {:4} {:5} | {:>8} {:>8} {:>7} | {:>8} {:>8} {:>7} | {:>8} {:>8} {:>7}\n", "reported, projected",
             "from", "", "dev.-h", "ours", "error", "days", "ours", "error", "MWh", "ours", "error");
  for (const FullRun& run : runs) print_row(run);
  fmt::print("\nrows that set no figure of a machine file:\n");
  hours[0].print("device-hours by prediction");
  hours[1].print("device-hours by a published rate");
  days.print("days");
  energy.print("energy");
  return kDone;
}

}  // namespace ridgeline::cli
