// project and job as a user calls them.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/in_folder.h"
#include "source_folder.h"

namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kConfig =
    "[model]\npreset = \"gpt-22b\"\n[strategy]\npipeline = 8\nzero_stage = 1\nrecompute = \"full\"\n"
    "global_batch = 1024\n[precision]\ncompute = \"bf16\"\n[data]\npath = \"corpus\"\n[training]\nrun = \"runs/22b\"\n"
    "[checkpoint]\nevery = 100\n";

class Project : public InFolder {
 protected:
  void SetUp() override {
    InFolder::SetUp();
    write("run.toml", kConfig);
  }
  Result run(const std::string& arguments) {
    return InFolder::run(arguments, "RIDGELINE_MACHINES='" RIDGELINE_SOURCE_DIR "/machines'");
  }
  void refused(const std::string& arguments, const char* words) {
    const Result result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << result.output;
    EXPECT_THAT(result.errors, HasSubstr(words)) << arguments;
  }
};

TEST_F(Project, AConfigIsProjectedWithTheDesignsKeys) {
  const Result result =
      run("project run.toml --tokens 1T --machine frontier --nodes 64 --deadline 90d --plays 100 "
          "--budget-node-hours 20k --price-node-hour 3 --json");
  EXPECT_EQ(result.exit_code, 2);  // 20k is no number of CLI11's
  const Result good =
      run("project run.toml --tokens 1T --machine frontier --nodes 64 --deadline 90d --plays 100 "
          "--budget-node-hours 20000 --price-node-hour 3 --json");
  ASSERT_EQ(good.exit_code, 0) << good.errors;
  const json document = json::parse(good.output);
  EXPECT_EQ(document["tokens"], 1e12);
  EXPECT_EQ(document["devices"], 512);
  for (const char* key : {"days", "node_hours", "device_hours", "energy_mwh", "cost"}) {
    const json& range = document[key];
    EXPECT_LT(range["low"], range["middle"]) << key;
    EXPECT_LT(range["middle"], range["high"]) << key;
  }
  EXPECT_NEAR(document["device_hours"]["middle"].get<double>() / document["node_hours"]["middle"].get<double>(), 8,
              1e-9);
  double hours = 0;
  for (const auto& [key, value] : document["hours"].items()) hours += key == "of_which_ramp" ? 0 : value.get<double>();
  EXPECT_NEAR(hours / 24 / document["days"]["middle"].get<double>(), 1, 1e-6);
  EXPECT_GE(document["what_if"].size(), 4u);
  EXPECT_LE(document["deadline"]["fewest_nodes"]["days"]["middle"], 90);
  EXPECT_LT(document["budget"]["tokens"], 1e12);
}

TEST_F(Project, TextFitsATerminal) {
  const Result result = run("project run.toml --machine frontier --nodes 64 --walltime 2h --queue-wait 3h --plays 100");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("20 a parameter"));
  EXPECT_THAT(result.output, HasSubstr("queue"));
  EXPECT_THAT(result.output, HasSubstr("assumed: a node fails every"));
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 96u) << line;
}

TEST_F(Project, WrongQuestionsAreRefused) {
  refused("project run.toml", "add --machine");
  refused("project run.toml --machine frontier", "add --nodes");
  refused("project run.toml run.toml --machine frontier", "one config or recorded runs");
  refused("project nowhere", "nowhere");
  refused("project run.toml --machine frontier --nodes 64 --tokens lots", "--tokens 'lots': expected");
  refused("project run.toml --machine frontier --nodes 64 --walltime 1min", "use longer jobs");
  refused("project run.toml --machine frontier --nodes 64 --ramp 5", "START:INCREMENT:SAMPLES");
  refused("project run.toml --machine frontier --nodes 2 --set model.preset=gpt-175b", "does not fit");
  refused("project run.toml --machine frontier --nodes 10000", "has 9408 nodes");
}

TEST_F(Project, JobScriptsPassTheShellsCheck) {
  write("odd name.toml", kConfig);
  for (const char* arguments :
       {"run.toml --machine frontier --nodes 64 --account ABC123", "run.toml --machine perlmutter-80 --nodes 16",
        "'odd name.toml' --machine dgx-h100 --nodes 16 --spare-nodes 2 --set 'optimizer.lr=1e-4'",
        "run.toml --machine selene --nodes 16 --sbatch --partition=long"}) {
    const Result result = run(std::string("job ") + arguments + " --write job.sh");
    ASSERT_EQ(result.exit_code, 0) << arguments << result.errors;
    EXPECT_EQ(std::system(("bash -n '" + folder_ + "/job.sh'").c_str()), 0) << arguments;
    const std::string script = read(folder_ + "/job.sh");
    EXPECT_THAT(script, HasSubstr("#SBATCH --signal=USR1@"));
    EXPECT_THAT(script, HasSubstr("#SBATCH --requeue\n"));
  }
}

TEST_F(Project, AFrontierJobHasTheSitesSettings) {
  const Result result = run("job run.toml --machine frontier --nodes 64 --account ABC123");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  for (const char* words : {"#SBATCH --nodes=64\n", "#SBATCH --time=02:00:00\n", "#SBATCH --account=ABC123\n",
                            "#SBATCH --network=disable_rdzv_get\n", "module load rccl-net-plugin\n",
                            "export NCCL_SOCKET_IFNAME=hsn0,", "export FI_MR_CACHE_MONITOR=kdreg2\n",
                            "--gpu-bind=closest", "tasks=512\n", "checkpoints=runs/22b/checkpoints\n"}) {
    EXPECT_THAT(result.output, HasSubstr(words));
  }
  EXPECT_THAT(run("job run.toml --machine frontier --nodes 512").output, HasSubstr("--time=12:00:00"));
}

TEST_F(Project, JobsThatCannotBeAreRefused) {
  refused("job run.toml --machine frontier --nodes 64 --walltime 3h", "for 2 h at most");
  refused("job run.toml --machine frontier --nodes 64 --walltime 5min", "ask for longer jobs");
  refused("job run.toml --machine frontier --nodes 2 --set model.preset=gpt-175b", "does not fit");
  refused("job run.toml --machine frontier", "expected --nodes");
  refused("job run.toml --machine frontier --nodes 63", "strategy.global_batch");
  refused("job run.toml --machine frontier --nodes 64 --account 'a\nb'", "without control characters");
}

}  // namespace
