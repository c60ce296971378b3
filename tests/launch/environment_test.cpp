#include "launch/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "launch/job_key.h"

namespace ridgeline::launch {
namespace {

using testing::HasSubstr;
using Map = std::map<std::string, std::string>;

RankEnvironment detect_in(const Map& map) {
  return detect([&](const std::string& name) -> std::optional<std::string> {
    const auto found = map.find(name);
    if (found == map.end()) return std::nullopt;
    return found->second;
  });
}

std::string error_in(const Map& map) {
  try {
    detect_in(map);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

Map with(Map map, const Map& changes) {
  for (const auto& [name, value] : changes) map[name] = value;
  return map;
}
Map without(Map map, const std::string& name) {
  map.erase(name);
  return map;
}

const Map kTorchrun = {{"RANK", "5"},         {"WORLD_SIZE", "8"},     {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"},
                       {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "29500"}};
const Map kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"OMPI_MCA_orte_precondition_transports", "a6-54"},
                      {"PMIX_NAMESPACE", "2030895105"}};
const Map kMpich = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
const Map kSlurm = {{"SLURM_JOB_ID", "777"},
                    {"SLURM_STEP_ID", "0"},
                    {"SLURM_PROCID", "9"},
                    {"SLURM_NTASKS", "12"},
                    {"SLURM_STEP_NUM_TASKS", "12"},
                    {"SLURM_LOCALID", "1"},
                    {"SLURM_NODEID", "2"},
                    {"SLURM_STEP_TASKS_PER_NODE", "4(x2),2(x2)"},
                    {"SLURM_STEP_NODELIST", "frontier[00012-00013,00020],login1"}};

TEST(Detect, NothingIsOneRank) {
  const auto environment = detect_in({});
  EXPECT_EQ(environment.launcher, "single");
  EXPECT_EQ(environment.world, 1);
  EXPECT_EQ(describe(environment), "one rank");
}

TEST(Detect, Torchrun) {
  const auto environment = detect_in(kTorchrun);
  EXPECT_EQ(describe(environment), "rank 5 of 8 (local 1 of 4, torchrun, rendezvous at n0:29500)");
  EXPECT_FALSE(environment.cores_are_own);
}

TEST(Detect, LocalMeetsAtAFile) {
  Map map = with(without(kTorchrun, "MASTER_PORT"),
                 {{"RIDGELINE_LAUNCHER", "local"}, {"RIDGELINE_RENDEZVOUS_FILE", "/tmp/x"}});
  const auto environment = detect_in(map);
  EXPECT_EQ(environment.launcher, "local");
  EXPECT_EQ(environment.rendezvous_file, "/tmp/x");
  EXPECT_EQ(environment.master_port, 0);
}

TEST(Detect, HalfSetTorchrunNamesTheVariable) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_THAT(error_in(without(kTorchrun, name)), HasSubstr(name));
  }
}

TEST(Detect, ContradictionsAndGarbageAreRefused) {
  EXPECT_THAT(error_in(with(kTorchrun, {{"RANK", "8"}})), HasSubstr("the rank must be below the number of ranks"));
  EXPECT_THAT(error_in(with(kTorchrun, {{"LOCAL_RANK", "4"}})), HasSubstr("the local rank must be below"));
  EXPECT_THAT(error_in(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}})), HasSubstr("more local ranks than ranks"));
  for (const char* garbage : {"", "-1", "1x", " 1", "99999999999999999999", "0x1"}) {
    EXPECT_THAT(error_in(with(kTorchrun, {{"RANK", garbage}})), HasSubstr("RANK = '")) << garbage;
  }
  EXPECT_THAT(error_in(with(kTorchrun, {{"MASTER_PORT", "65536"}})), HasSubstr("expected 1 to 65535"));
}

TEST(Detect, OpenMpiOnOneMachineDerivesThePort) {
  const auto environment = detect_in(kOpenMpi);
  EXPECT_EQ(environment.launcher, "openmpi");
  EXPECT_EQ(environment.master_address, "127.0.0.1");
  EXPECT_EQ(environment.master_port, port_of_job("a6-54"));
  const auto own = detect_in(with(kOpenMpi, {{"MASTER_ADDR", "n7"}, {"MASTER_PORT", "1234"}}));
  EXPECT_EQ(own.master_address, "n7");
  EXPECT_EQ(own.master_port, 1234);
}

TEST(Detect, OpenMpiOverMachinesNeedsAHost) {
  const Map wide = with(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "4"}});
  EXPECT_THAT(error_in(wide), HasSubstr("set MASTER_ADDR"));
  EXPECT_EQ(detect_in(with(wide, {{"SLURM_JOB_NODELIST", "n[3-4]"}})).master_address, "n3");
  EXPECT_EQ(detect_in(with(wide, {{"MASTER_ADDR", "n1"}})).master_port, port_of_job("a6-54"));
}

TEST(Detect, OpenMpiBindingOwnsItsCoresUnlessOversubscribed) {
  const Map bound = with(kOpenMpi, {{"OMPI_MCA_orte_bound_at_launch", "1"}});
  EXPECT_TRUE(detect_in(bound).cores_are_own);
  EXPECT_FALSE(detect_in(with(bound, {{"OMPI_MCA_rmaps_base_oversubscribe", "1"}})).cores_are_own);
}

TEST(Detect, Mpich) {
  const auto environment = detect_in(kMpich);
  EXPECT_EQ(environment.launcher, "mpich");
  EXPECT_EQ(environment.rank, 1);
  EXPECT_EQ(environment.local_world, 2);
  EXPECT_EQ(environment.master_address, "127.0.0.1");
  EXPECT_GE(environment.master_port, 10000);
  EXPECT_THAT(error_in(without(kMpich, "PMI_SIZE")), HasSubstr("PMI_SIZE is not set"));
  EXPECT_THAT(error_in(with(kMpich, {{"PMI_SIZE", "4"}})), HasSubstr("set MASTER_ADDR"));
  EXPECT_THAT(error_in(with(kMpich, {{"PMI_SIZE", "4"}, {"MASTER_ADDR", "n0"}})), HasSubstr("set MASTER_PORT"));
}

TEST(Detect, Pals) {
  const Map map = {{"PALS_RANKID", "3"},      {"PMI_SIZE", "24"},         {"PALS_LOCAL_RANKID", "3"},
                   {"PALS_LOCAL_SIZE", "12"}, {"PALS_APID", "uuid-1234"}, {"MASTER_ADDR", "x1"},
                   {"PMI_RANK", "3"}};
  const auto environment = detect_in(map);
  EXPECT_EQ(environment.launcher, "pals");
  EXPECT_EQ(environment.local_world, 12);
  EXPECT_EQ(environment.master_port, port_of_job("uuid-1234"));
}

TEST(Detect, SlurmStep) {
  const auto environment = detect_in(kSlurm);
  EXPECT_EQ(environment.launcher, "slurm");
  EXPECT_EQ(environment.rank, 9);
  EXPECT_EQ(environment.world, 12);
  EXPECT_EQ(environment.local_world, 2);
  EXPECT_EQ(environment.master_address, "frontier00012");
  EXPECT_EQ(environment.master_port, port_of_job("slurm 777.0"));
  EXPECT_NE(environment.master_port, detect_in(with(kSlurm, {{"SLURM_STEP_ID", "1"}})).master_port);
}

TEST(Detect, AllocationWithoutSrunIsNoStep) {
  const Map batch = {{"SLURM_JOB_ID", "777"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "12"}, {"SLURM_LOCALID", "0"}};
  EXPECT_EQ(detect_in(batch).world, 1);
  EXPECT_THAT(detect_in(batch).note, HasSubstr("inside Slurm job 777 but not started by srun"));
  for (const char* special : {"4294967290", "4294967291", "4294967292"}) {
    EXPECT_EQ(detect_in(with(batch, {{"SLURM_STEP_ID", special}})).launcher, "single") << special;
  }
}

TEST(Detect, BadTaskCountsAreRefused) {
  for (const char* counts : {"x", "4(x2", "4(x0)", "0", "4;4;4", "4(x2)", "99999999999999999999"}) {
    EXPECT_THAT(error_in(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", counts}})), HasSubstr("TASKS_PER_NODE")) << counts;
  }
}

TEST(Detect, TheInnermostLauncherWins) {
  EXPECT_EQ(detect_in(with(kSlurm, kTorchrun)).launcher, "torchrun");
  EXPECT_EQ(detect_in(with(kSlurm, kOpenMpi)).launcher, "openmpi");
  EXPECT_EQ(detect_in(with(kSlurm, kMpich)).launcher, "mpich");
  // srun --mpi=pmi2 sets these too, and they do not count ranks of the machine.
  EXPECT_EQ(detect_in(with(kSlurm, {{"PMI_RANK", "9"}, {"PMI_SIZE", "12"}})).launcher, "slurm");
}

TEST(Detect, RendezvousFileReplacesAddressAndPort) {
  const auto environment = detect_in(with(kSlurm, {{"RIDGELINE_RENDEZVOUS_FILE", "/shared/meet"}}));
  EXPECT_EQ(environment.rendezvous_file, "/shared/meet");
  EXPECT_EQ(environment.master_address, "");
}

TEST(FirstHost, OfNodeLists) {
  EXPECT_EQ(first_host("n1"), "n1");
  EXPECT_EQ(first_host("n1,n2"), "n1");
  EXPECT_EQ(first_host("nid[001-004,9]"), "nid001");
  EXPECT_EQ(first_host("a[1-2]b[3,4]-ib,c"), "a1b3-ib");
  EXPECT_THROW(first_host(""), InputError);
  EXPECT_THROW(first_host("n[1-2"), InputError);
  EXPECT_THROW(first_host(",n"), InputError);
}

TEST(PortOfJob, StaysInItsRangeAndSpreads) {
  std::map<int, int> seen;
  for (int job = 0; job < 1000; ++job) ++seen[port_of_job(std::to_string(job))];
  EXPECT_GT(seen.size(), 950u);
  EXPECT_GE(seen.begin()->first, 10000);
  EXPECT_LT(seen.rbegin()->first, 30000);
}

}  // namespace
}  // namespace ridgeline::launch
