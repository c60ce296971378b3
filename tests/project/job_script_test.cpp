// The batch job as text; tests/cli checks it with a shell, tests/run on a real Slurm.
#include "project/job_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace ridgeline::project {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

JobOrder order() {
  JobOrder order;
  order.program = "/opt/ridgeline";
  order.config = "run.toml";
  order.run = "runs/a";
  order.name = "a";
  order.nodes = 4;
  order.ranks_per_node = 8;
  order.seconds = 7200;
  order.lead_seconds = 200;
  return order;
}

TEST(JobScript, WordsAreQuotedForTheShell) {
  EXPECT_EQ(shell_quoted("runs/a-1.toml"), "runs/a-1.toml");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted("$(rm -r /)"), "'$(rm -r /)'");
  JobOrder hostile = order();
  hostile.config = "a;b.toml";
  hostile.run = "$(reboot)";
  hostile.sets = {"data.path=a b"};
  const std::string script = job_script(hostile, spec::Machine{});
  EXPECT_THAT(script, HasSubstr("train 'a;b.toml' \\\n    --set 'data.path=a b'\n"));
  EXPECT_THAT(script, HasSubstr("checkpoints='$(reboot)/checkpoints'"));
}

TEST(JobScript, SpareNodesKeepTheJobAlive) {
  JobOrder spare = order();
  EXPECT_THAT(job_script(spare, {}), AllOf(Not(HasSubstr("--no-kill")), Not(HasSubstr("sinfo"))));
  spare.spare_nodes = 2;
  const std::string script = job_script(spare, {});
  for (const char* words :
       {"#SBATCH --nodes=6\n", "#SBATCH --no-kill\n", "nodes=4\n", "tasks=32\n", "--nodelist=\"$alive\""}) {
    EXPECT_THAT(script, HasSubstr(words));
  }
}

TEST(JobScript, MachinesWithoutASiteGetAPlainScript) {
  const std::string script = job_script(order(), spec::Machine{});
  EXPECT_THAT(script, HasSubstr("#SBATCH --ntasks-per-node=8\n"));  // or a node gives one core
  EXPECT_THAT(script, HasSubstr("    --ntasks-per-node=8 "));
  EXPECT_THAT(script, Not(HasSubstr("module load")));
  EXPECT_THAT(script, HasSubstr("#SBATCH --time=02:00:00\n#SBATCH --signal=USR1@200\n"));
}

TEST(JobScript, TheSignalLeavesTimeToSave) {
  EXPECT_GE(lead_seconds(30, 60), 30 + 60 + 60);
  JobOrder brief = order();
  brief.seconds = 600;
  EXPECT_THAT([&] { job_script(brief, {}); }, ThrowsMessage<InputError>(HasSubstr("ask for longer jobs")));
  brief = order();
  brief.name = "a\n#SBATCH --uid=0";
  EXPECT_THAT([&] { job_script(brief, {}); }, ThrowsMessage<InputError>(HasSubstr("--name")));
}

}  // namespace
}  // namespace ridgeline::project
