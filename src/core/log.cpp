#include "core/log.h"

#include <spdlog/sinks/ansicolor_sink.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline {
namespace {

spdlog::level::level_enum level_for(int rank) {
  const char* asked = std::getenv("RIDGELINE_LOG");
  if (asked == nullptr || *asked == '\0') return rank == 0 ? spdlog::level::info : spdlog::level::warn;
  static const std::vector<std::pair<std::string, spdlog::level::level_enum>> kLevels = {
      {"trace", spdlog::level::trace}, {"debug", spdlog::level::debug}, {"info", spdlog::level::info},
      {"warn", spdlog::level::warn},   {"error", spdlog::level::err},   {"off", spdlog::level::off}};
  std::vector<std::string> names;
  for (const auto& [name, level] : kLevels) {
    if (name == asked) return level;
    names.push_back(name);
  }
  throw InputError("environment: RIDGELINE_LOG = '{}': expected one of {}{}", asked, join(names),
                   did_you_mean(asked, names));
}

}  // namespace

void set_up_log(int rank, int world) {
  const auto level = level_for(rank);
  const char* no_color = std::getenv("NO_COLOR");
  const auto color =
      no_color != nullptr && *no_color != '\0' ? spdlog::color_mode::never : spdlog::color_mode::automatic;
  auto logger =
      std::make_shared<spdlog::logger>("ridgeline", std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(color));
  const std::string who = world > 1 ? fmt::format("[rank {}] ", rank) : "";
  logger->set_pattern("%H:%M:%S %^%l%$ " + who + "%v");
  logger->set_level(level);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace ridgeline
