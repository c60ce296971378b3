#include "cli/start_ranks.h"

#include "cli/find_engine.h"
#include "core/error.h"
#include "core/log.h"
#include "launch/environment.h"
#include "launch/local.h"

namespace ridgeline::cli {

void add_nproc_option(CLI::App& command, int& ranks) {
  command.add_option("--nproc", ranks, "start N ranks on this machine")->type_name("N")->check(CLI::Range(1, 4096));
}

int start_ranks(int ranks, const std::function<void(int world)>& check, const std::vector<std::string>& words) {
  const launch::RankEnvironment environment = launch::detect();
  if (ranks > 0 && environment.world > 1) {
    throw InputError("--nproc {}: {} has started {} ranks already; use one of the two", ranks, environment.launcher,
                     environment.world);
  }
  set_up_log(environment.rank, environment.world);
  check(ranks > 0 ? ranks : environment.world);
  std::vector<std::string> command = {find_engine()};
  command.insert(command.end(), words.begin(), words.end());
  if (ranks > 1) return launch::run_local_ranks({.command = command, .ranks = ranks});
  become(command);
}

}  // namespace ridgeline::cli
