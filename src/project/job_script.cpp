#include "project/job_script.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace ridgeline::project {
namespace {

constexpr double kLeastWork = 4;  // times the lead: a job's least length

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::floor(seconds));
  return fmt::format("{:02}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

// A line of the script ends where its text does.
const std::string& one_line(const std::string& word, const char* what) {
  const bool is_plain = std::all_of(word.begin(), word.end(), [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && static_cast<unsigned char>(c) != 127;
  });
  if (is_plain && !word.empty()) return word;
  throw InputError("{} '{}': expected text without control characters", what, shortened(word));
}

std::vector<std::string> placement_of(const JobOrder& order, const spec::SiteFacts& site) {
  if (!site.srun.empty()) return site.srun;
  return {fmt::format("--ntasks-per-node={}", order.ranks_per_node)};
}

// What srun is to place, sbatch must have asked for.
bool is_asked_of_sbatch(const std::string& option) {
  for (const char* name : {"--ntasks-per-node=", "--cpus-per-task=", "--gpus-per-node=", "--gpus-per-task="}) {
    if (option.starts_with(name)) return true;
  }
  return false;
}

std::string header(const JobOrder& order, const spec::Machine& machine) {
  std::string text = "#!/bin/bash\n";
  text += fmt::format("# `ridgeline job`: {} on {} nodes of {}. Submit it with sbatch, from this folder.\n",
                      one_line(order.config, "CONFIG"), order.nodes, machine.name);
  std::vector<std::string> options = {"--job-name=" + one_line(order.name, "--name"),
                                      fmt::format("--nodes={}", order.nodes + order.spare_nodes),
                                      "--time=" + clock_text(order.seconds),
                                      fmt::format("--signal=USR1@{:.0f}", order.lead_seconds),
                                      "--requeue",
                                      "--open-mode=append",
                                      "--output=%x-%j.log"};
  if (!order.account.empty()) options.push_back("--account=" + one_line(order.account, "--account"));
  if (order.spare_nodes > 0) options.push_back("--no-kill");
  for (const std::string& option : placement_of(order, machine.site)) {
    if (is_asked_of_sbatch(option)) options.push_back(option);
  }
  options.insert(options.end(), machine.site.sbatch.begin(), machine.site.sbatch.end());
  options.insert(options.end(), order.sbatch.begin(), order.sbatch.end());
  for (const std::string& option : options) text += "#SBATCH " + one_line(option, "--sbatch") + "\n";
  return text;
}

std::string environment(const spec::SiteFacts& site) {
  std::string text;
  for (const std::string& module : site.modules) text += "module load " + module + "\n";
  for (const std::string& variable : site.environment) {
    const size_t equals = variable.find('=');
    text += fmt::format("export {}={}\n", variable.substr(0, equals), shell_quoted(variable.substr(equals + 1)));
  }
  return text.empty() ? text : text + "\n";
}

std::string settings(const JobOrder& order) {
  return fmt::format(
      "nodes={}\n"
      "tasks={}\n"
      "limit={:.0f}  # seconds of this job, and those before its end at which Slurm sends USR1\n"
      "lead={:.0f}\n"
      "checkpoints={}\n"
      "most_futile=3  # starts in a row that bring no new checkpoint\n\n",
      order.nodes, order.nodes * order.ranks_per_node, std::floor(order.seconds), order.lead_seconds,
      shell_quoted(order.run + "/checkpoints"));
}

std::string train_function(const JobOrder& order, const spec::SiteFacts& site) {
  std::vector<std::string> words = placement_of(order, site);
  std::string placement;
  if (order.spare_nodes > 0) {
    // Slurm marks nodes that died; the first of the others that are enough take part.
    placement =
        "  local alive\n"
        "  alive=$(sinfo --noheader --Node --nodes=\"$SLURM_JOB_NODELIST\" --states=alloc,mix,idle --format=%N |\n"
        "    sort -u | head -n \"$nodes\" | paste -sd,)\n";
    words.push_back("--nodelist=\"$alive\"");
  }
  std::string text =
      "train() {\n" + placement + "  srun --nodes=\"$nodes\" --ntasks=\"$tasks\" --wait=60 \\\n";
  for (const std::string& word : words) text += "    " + word + " \\\n";
  text += fmt::format("    {} train {}", shell_quoted(order.program), shell_quoted(order.config));
  if (!order.machine.empty()) text += " \\\n    --machine " + shell_quoted(one_line(order.machine, "--machine"));
  for (const std::string& set : order.sets) text += " \\\n    --set " + shell_quoted(one_line(set, "--set"));
  return text + "\n}\n\n";
}

constexpr const char* kLoop = R"bash(newest() {
  ls -1 "$checkpoints" 2>/dev/null | grep -E '^step-[0-9]+$' | sort | tail -n 1
}

futile=0
while true; do
  before=$(newest)
  train
  code=$?
  echo "ridgeline job: train ended with code $code after ${SECONDS} s, newest checkpoint: $(newest)"
  case $code in
    0) exit 0 ;;
    2) exit 2 ;;  # the input is wrong: starting again does not help
    3)            # saved when asked to stop: by Slurm, as the time is up, or by a person
      if ((SECONDS + lead + 90 >= limit)); then
        echo "ridgeline job: back in the queue, to go on from there"
        scontrol requeue "$SLURM_JOB_ID" && exit 0
      fi
      exit 3 ;;
  esac
  if [ "$(newest)" = "$before" ]; then futile=$((futile + 1)); else futile=0; fi
  if ((futile >= most_futile)); then
    echo "ridgeline job: $futile starts in a row without a new checkpoint; giving up" >&2
    exit "$code"
  fi
  sleep 10
done
)bash";

}  // namespace

double lead_seconds(double step_seconds, double save_seconds) {
  return std::ceil(2 * step_seconds + 2 * save_seconds + 120);
}

std::string shell_quoted(const std::string& word) {
  const auto is_safe = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./=:,@%+").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_safe)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string job_script(const JobOrder& order, const spec::Machine& machine) {
  if (order.seconds < kLeastWork * order.lead_seconds) {
    throw InputError(
        "a job of {}: saving before its end needs {}, so that expected is at least {}; ask for longer jobs",
        format_duration(order.seconds), format_duration(order.lead_seconds),
        format_duration(kLeastWork * order.lead_seconds));
  }
  return header(order, machine) + "\nset -u -o pipefail\n\n" + environment(machine.site) + settings(order) +
         train_function(order, machine.site) + kLoop;
}

}  // namespace ridgeline::project
