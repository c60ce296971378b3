#include "spec/machine_operation.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline::spec {
namespace {

struct JobLimit {
  int64_t nodes = 0;
  double hours = 0;
};

JobLimit parse_limit(const std::string& word, const std::string& file) {
  JobLimit limit;
  const char* end = word.data() + word.size();
  const auto [colon, nodes_error] = std::from_chars(word.data(), end, limit.nodes);
  bool good = nodes_error == std::errc() && colon != end && *colon == ':' && limit.nodes > 0;
  if (good) {
    const char* hours = colon + 1;
    while (hours != end && *hours == ' ') ++hours;
    const auto [rest, hours_error] = std::from_chars(hours, end, limit.hours);
    good = hours_error == std::errc() && rest == end && limit.hours > 0 && limit.hours < 1e4;
  }
  if (good) return limit;
  throw InputError("{}: site.walltime: \"{}\": expected \"NODES: HOURS\", such as \"92: 6\"", file, shortened(word));
}

bool is_name(std::string_view text) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), is_part);
}

// They become lines of a shell script.
void check_words(const std::vector<std::string>& words, const char* key, const std::string& file) {
  for (const std::string& word : words) {
    const bool is_plain = std::all_of(word.begin(), word.end(), [](char c) { return c >= ' ' && c != 127; });
    if (is_plain && !word.empty()) continue;
    throw InputError("{}: {}: \"{}\": expected text without control characters", file, key, shortened(word));
  }
}

}  // namespace

void bind_operation(Schema& schema, PowerFacts& power, OperationFacts& operation, SiteFacts& site) {
  schema.table("power", "What devices and nodes draw");
  schema.key("power.busy_w", power.busy_w, "of a device that trains, mean, W; 0: not known", between(0, 1e5));
  schema.key("power.idle_w", power.idle_w, "of a device that waits, W", between(0, 1e5));
  schema.key("power.node_other_w", power.node_other_w, "of a node beside its devices, W", between(0, 1e6));
  schema.key("power.pue", power.pue, "energy of the site over that of its computers", between(1, 10));

  schema.table("operation", "Failures, starts and storage");
  schema.key("operation.node_mtbf_hours", operation.node_mtbf_hours,
             "hours of one node between failures that end a job; 0: not known", between(0, 1e9));
  schema.key("operation.restart_minutes", operation.restart_minutes, "from a failure until processes start again",
             between(0, 1e5));
  schema.key("operation.start_minutes", operation.start_minutes, "from there to the first step", between(0, 1e5));
  schema.key("operation.storage_gb_per_s", operation.storage_gb_per_s, "that all nodes write, GB/s; 0: not known",
             between(0, 1e6));
  schema.key("operation.node_storage_gb_per_s", operation.node_storage_gb_per_s, "that one node writes at most, GB/s",
             Interval{.low = 0, .high = 1e4, .low_open = true});

  schema.table("site", "What a batch job of the site needs");
  schema.words("site.walltime", site.walltime, "\"NODES: HOURS\": longest job from so many nodes on, ascending");
  schema.words("site.sbatch", site.sbatch, "options of sbatch");
  schema.words("site.modules", site.modules, "modules to load");
  schema.words("site.environment", site.environment, "\"NAME=VALUE\"");
  schema.words("site.srun", site.srun, "options of srun: binding of ranks");
}

std::optional<double> longest_job_hours(const SiteFacts& site, int64_t nodes, const std::string& file) {
  std::optional<double> hours;
  int64_t before = 0;
  for (const std::string& word : site.walltime) {
    const JobLimit limit = parse_limit(word, file);
    if (limit.nodes <= before) {
      throw InputError("{}: site.walltime: \"{}\" after {} nodes: expected ascending numbers of nodes", file, word,
                       before);
    }
    before = limit.nodes;
    if (limit.nodes <= nodes) hours = limit.hours;
  }
  return hours;
}

void check(const SiteFacts& site, const std::string& file) {
  longest_job_hours(site, 1, file);
  check_words(site.sbatch, "site.sbatch", file);
  check_words(site.modules, "site.modules", file);
  check_words(site.srun, "site.srun", file);
  check_words(site.environment, "site.environment", file);
  for (const std::string& word : site.environment) {
    if (is_name(std::string_view(word).substr(0, word.find('='))) && word.find('=') != std::string::npos) continue;
    throw InputError("{}: site.environment: \"{}\": expected \"NAME=VALUE\"", file, shortened(word));
  }
}

}  // namespace ridgeline::spec
