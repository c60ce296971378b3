#include "planning_accuracy.h"

#include <cstdio>
#include <filesystem>

#include "core/error.h"
#include "simulate/measured_memory.h"
#include "simulate/measured_scaling.h"
#include "simulate/validation.h"

namespace ridgeline::bench {
namespace {

struct Peer {
  const char* source;  // begins with
  const char* figure;
};
constexpr Peer kPeers[] = {
    {"vTrain, one node", "must 8 %, tau 0.85, regret 3 %; vTrain 8.4 %, Calculon 38.9 % (tau 0.55, regret 10 %)"},
    {"vTrain, several", "must 8 %, tau 0.85, regret 3 %; vTrain 14.7 %, Calculon 19.6 %"},
    {"Korthikanti", "must 3.65 %; Calculon 3.65 %"},
    {"SimuMax", "must 5.6 %, memory 0.5 %; SimuMax 5.6 %, memory 0.46 %"},
    {"Sailor", "Sailor 8.9 %, memory 5.9 % (OPT-350M); Varuna 11.4 %, Metis 12.2 %"},
    {"Dash et al. 2023 (Frontier, arXiv 2312.12705), scaling", "must 4 points"},
    {"Dash", "must 8 %"},
    {"LUMI", "must 5 %; memory 3 %"},
    {"ORNL", "must 3 % (memory)"},
    {"", "must 10 %"},
};

const char* peer_of(const std::string& source) {
  for (const Peer& peer : kPeers) {
    if (source.starts_with(peer.source)) return peer.figure;
  }
  return "";
}

void print(const std::vector<simulate::Accuracy>& accuracies) {
  for (const simulate::Accuracy& accuracy : accuracies) {
    if (accuracy.predicted == 0 || accuracy.source == "all") continue;
    std::printf("%-58.58s %4lld rows  %5.1f %%", accuracy.source.c_str(), static_cast<long long>(accuracy.predicted),
                100 * accuracy.mean_absolute_error);
    if (accuracy.kendall_tau) std::printf("  tau %.2f", *accuracy.kendall_tau);
    if (accuracy.regret) std::printf("  regret %.1f %%", 100 * *accuracy.regret);
    if (accuracy.memory_mean_absolute_error) {
      std::printf("  memory %.2f %%", 100 * *accuracy.memory_mean_absolute_error);
    }
    std::printf("   (%s)\n", peer_of(accuracy.source));
  }
}

void print_file(const std::string& path) {
  const simulate::Table table = simulate::read_table(path);
  if (simulate::is_memory_table(table)) return print(simulate::accuracies(simulate::validate_memory(table, "")));
  if (simulate::is_scaling_table(table)) return print(simulate::accuracies(simulate::validate_scaling(table, "")));
  print(simulate::accuracies(simulate::validate_runs(simulate::measured_runs(table), "")));
}

}  // namespace

void print_accuracy(const std::vector<std::string>& folders) {
  std::puts(
      "\nmean absolute error of step times (memory.csv: of peaks; scaling: of efficiencies), beside what must hold");
  for (const std::string& folder : folders) {
    for (const char* name :
         {"throughput.csv", "scaling.csv", "memory.csv", "vtrain_a100_single_node.csv", "vtrain_a100_multi_node.csv",
          "megatron_seqpar_selene_a100.csv", "simumax_b200.csv", "sailor_gh200_alps.csv", "published_throughput.csv"}) {
      const std::filesystem::path path = std::filesystem::path(folder) / name;
      if (std::filesystem::exists(path)) print_file(path.string());
    }
  }
}

}  // namespace ridgeline::bench
