#include "cli/scale_output.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/prediction_output.h"
#include "core/text.h"

namespace ridgeline::cli {
namespace {

using nlohmann::json;
using study::ScalePoint;
using study::Spread;

constexpr double kUseful = 1.0;  // share of the critical batch beyond which a warning stands

json spread_json(const Spread& spread) {
  return {{"low", spread.low}, {"middle", spread.middle}, {"high", spread.high}};
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

bool ran(const ScalePoint& point) { return point.seconds.middle > 0; }

std::string outcome_of(const ScalePoint& point) {
  return point.outcome ? search::to_string(*point.outcome) : std::string("not yet run");
}

json point_json(const ScaleView& view, const ScalePoint& point) {
  const search::Point& at = view.problem.points().at(point.point);
  json document = {{"devices", at.devices},
                   {"strategy", to_json(at.strategy)},
                   {"outcome", outcome_of(point)},
                   {"batch_tokens", point.batch_tokens},
                   {"critical_share", point.batch_tokens / view.result.critical.tokens}};
  if (!point.message.empty()) document["message"] = point.message;
  if (ran(point)) {
    document["step_seconds"] = spread_json(point.seconds);
    document["runs"] = point.medians;
    document["tokens_per_second"] = point.tokens_per_second;
    document["tokens_per_device_second"] = point.tokens_per_second / static_cast<double>(at.devices);
    document["tflops_per_device"] = point.tflops_per_device;
    document["hardware_tflops_per_device"] = point.hardware_tflops_per_device;
    document["efficiency"] = spread_json(*point.efficiency);
    document["speedup"] = point.speedup;
    document["ideal_speedup"] = point.ideal_speedup;
  }
  if (point.predicted) {
    document["predicted"] = to_json(*point.predicted);
    document["predicted"].erase("strategy");
    if (point.predicted_efficiency) document["predicted"]["efficiency"] = *point.predicted_efficiency;
    document["loss"] = json::object();
    for (const study::LossPart& part : point.loss) document["loss"][part.name] = part.share;
  }
  return document;
}

json fit_json(const study::ScaleResult& result) {
  if (!result.fit) return nullptr;
  const study::ScaleFit& fit = *result.fit;
  json document = {{"law", result.kind == study::ScaleKind::strong ? "amdahl" : "added_by_doubling"},
                   {"share", fit.share.middle},
                   {"interval", nullptr},
                   {"step_seconds", fit.seconds},
                   {"residual", fit.residual}};
  if (fit.has_interval) document["interval"] = {fit.share.low, fit.share.high};
  return document;
}

std::string point_line(const ScaleView& view, const ScalePoint& point) {
  const search::Point& at = view.problem.points().at(point.point);
  std::string text = fmt::format("{:>7} {:>7}", at.devices, at.strategy.global_batch);
  if (!ran(point))
    return text + fmt::format("  {}{}\n", outcome_of(point), point.message.empty() ? "" : ": " + point.message);
  const double half = (point.seconds.high - point.seconds.low) / 2 / point.seconds.middle;
  text += fmt::format(" {:>9} {:>6} {:>9} {:>9} {:>7.3g} {:>7}", format_duration(point.seconds.middle),
                      point.medians.size() > 1 ? percent(half) : "-", format_count(point.tokens_per_second),
                      format_count(point.tokens_per_second / static_cast<double>(at.devices)),
                      point.hardware_tflops_per_device, percent(point.efficiency->middle));
  if (view.problem.is_measured()) {
    text += fmt::format(" {:>7}", point.predicted_efficiency ? percent(*point.predicted_efficiency) : "-");
  }
  return text + "\n";
}

// Where predicted efficiency is lost: parts that reach half a percent anywhere.
std::string loss_table(const ScaleView& view) {
  std::string text;
  const std::vector<ScalePoint>& points = view.result.points;
  for (size_t part = 0; part < (points.empty() ? 0 : points.front().loss.size()); ++part) {
    bool is_seen = false;
    std::string line = fmt::format("  {:<14}", points.front().loss[part].name);
    for (const ScalePoint& point : points) {
      const double share = point.loss[part].share;
      is_seen = is_seen || std::abs(share) >= 0.005;
      line += fmt::format(" {:>8}", percent(share));
    }
    if (is_seen) text += line + "\n";
  }
  if (text.empty()) return "";
  std::string head = fmt::format("  {:<14}", "devices");
  for (const ScalePoint& point : points) head += fmt::format(" {:>8}", view.problem.points().at(point.point).devices);
  return "\nWhere the simulator sees efficiency lost (shares of a point's time; less than 0: gained):\n" + head + "\n" +
         text;
}

std::string fit_line(const study::ScaleResult& result) {
  if (!result.fit) return "";
  const study::ScaleFit& fit = *result.fit;
  const auto share = [](double value) { return fmt::format("{:.2f} %", 100 * value); };
  std::string tail = fmt::format("describes the points within {}", share(fit.residual));
  if (fit.has_interval) tail = fmt::format("95 %: {} to {}; {}", share(fit.share.low), share(fit.share.high), tail);
  const char* what = result.kind == study::ScaleKind::strong
                         ? "Amdahl's law: the share of the smallest point's step that does not scale is"
                         : "A doubling of the devices adds to a step";
  return fmt::format("\n{} {}\n({}).\n", what, share(fit.share.middle), tail);
}

std::string critical_text(const ScaleView& view) {
  const study::CriticalBatch& critical = view.result.critical;
  std::string text = fmt::format("\nCritical batch: {} tokens a step", format_count(critical.tokens));
  if (critical.is_measured) {
    text += " (as given).\n";
  } else {
    const bool grows = critical.early_tokens < critical.tokens;
    text += fmt::format(" by Kaplan's rule at a loss of {:.2f}{}\n(a rule of thumb: docs/scaling.md).\n", critical.loss,
                        grows ? fmt::format(", {} early at 3.0", format_count(critical.early_tokens)) : std::string());
  }
  for (const ScalePoint& point : view.result.points) {
    if (point.batch_tokens <= kUseful * critical.tokens) continue;
    return text + fmt::format(
                      "From {} devices on ({} tokens a step) the batch is beyond it: the same loss then costs\n"
                      "{:.1f} times the tokens that small batches need, and faster steps buy little.\n",
                      view.problem.points().at(point.point).devices, format_count(point.batch_tokens),
                      critical.cost_of(point.batch_tokens));
  }
  const double most = view.result.points.empty() ? 0 : view.result.points.back().batch_tokens;
  return text + fmt::format(
                    "The largest batch, {} tokens, is {} of it: the same loss costs {:.2f} times the tokens that\n"
                    "small batches need.\n",
                    format_count(most), percent(most / critical.tokens), critical.cost_of(most));
}

}  // namespace

json scale_json(const ScaleView& view) {
  const study::CriticalBatch& critical = view.result.critical;
  json document = {{"study", view.file.study.path},
                   {"store", view.file.study.store},
                   {"kind", study::to_string(view.result.kind)},
                   {"objective", view.problem.is_measured() ? "measured" : "simulate"},
                   {"machine", view.problem.machine().name},
                   {"points", json::array()},
                   {"fit", fit_json(view.result)},
                   {"critical_batch", {{"tokens", critical.tokens}, {"measured", critical.is_measured}}}};
  if (!critical.is_measured) {
    document["critical_batch"]["early_tokens"] = critical.early_tokens;
    document["critical_batch"]["loss"] = critical.loss;
  }
  for (const ScalePoint& point : view.result.points) document["points"].push_back(point_json(view, point));
  return document;
}

std::string scale_summary(const ScaleView& view) {
  const bool is_measured = view.problem.is_measured();
  std::string text =
      fmt::format("{} scaling of {} on {}, {}\n", study::to_string(view.result.kind), view.file.study.model,
                  view.problem.machine().name, is_measured ? "measured" : "simulated");
  if (!view.file.scale.replan && !view.result.points.empty()) {
    text += describe(view.problem.points().at(view.result.points.front().point).strategy) + "; data grows\n";
  }
  text += fmt::format("\n{:>7} {:>7} {:>9} {:>6} {:>9} {:>9} {:>7} {:>7}{}\n", "devices", "batch", "step", "+-",
                      "tokens/s", "a device", "TFLOP/s", "effic.", is_measured ? "  predicted" : "");
  for (const ScalePoint& point : view.result.points) text += point_line(view, point);
  text += "(TFLOP/s: of a device, with recomputation)\n";
  if (view.file.scale.replan) {
    text += "\nStrategies:\n";
    for (const ScalePoint& point : view.result.points) {
      const search::Point& at = view.problem.points().at(point.point);
      text += fmt::format("  {:>7}  {}\n", at.devices, describe(at.strategy));
    }
  }
  return text + fit_line(view.result) + loss_table(view) + critical_text(view);
}

std::string scale_csv(const ScaleView& view) {
  std::string text =
      "devices,tensor,pipeline,data,micro_batch,global_batch,outcome,step_seconds,step_seconds_low,step_seconds_high,"
      "runs,"
      "tokens_per_second,tflops_per_device,hardware_tflops_per_device,efficiency,efficiency_low,efficiency_high,"
      "predicted_step_seconds,predicted_efficiency,batch_tokens\r\n";
  const auto number = [](double value) { return value != 0 ? fmt::format("{}", value) : std::string(); };
  for (const ScalePoint& point : view.result.points) {
    const search::Point& at = view.problem.points().at(point.point);
    const Spread efficiency = point.efficiency.value_or(Spread());
    text += fmt::format("{},{},{},{},{},{},{}", at.devices, at.strategy.tensor, at.strategy.pipeline, at.strategy.data,
                        at.strategy.micro_batch, at.strategy.global_batch, outcome_of(point));
    for (const double value :
         {point.seconds.middle, point.seconds.low, point.seconds.high, static_cast<double>(point.medians.size()),
          point.tokens_per_second, point.tflops_per_device, point.hardware_tflops_per_device, efficiency.middle,
          efficiency.low, efficiency.high, point.predicted ? point.predicted->step_seconds : 0,
          point.predicted_efficiency.value_or(0), point.batch_tokens}) {
      text += "," + number(value);
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace ridgeline::cli
