#include "simulate/measured_systems.h"

namespace ridgeline::simulate {
namespace {

struct Known {
  const char* source;
  const char* system;
  const char* device;
  const char* machine;
};

// All parts must be found; the first row that matches.
constexpr Known kSystems[] = {
    {"FORGE", "Frontier", "", "frontier-neox"},
    {"", "Frontier", "", "frontier"},
    {"", "LUMI", "", "lumi"},
    {"", "Selene", "", "selene"},
    {"", "Perlmutter", "40", "perlmutter-40"},
    {"", "Perlmutter", "", "perlmutter-80"},
    {"", "Polaris", "", "polaris"},
    {"AuroraGPT", "", "", "aurora-torchtitan"},
    {"", "Aurora", "", "aurora"},
    {"", "Alps", "", "alps"},
    {"", "Summit", "V100", "summit"},
    {"", "Jean Zay (8x A100", "", "jean-zay-a100"},
    {"llm-foundry", "", "A100-SXM-80", "a100-foundry"},
    {"llm-foundry", "", "A100-SXM-40", "a100-foundry-40"},
    {"llm-foundry", "", "H100", "h100-foundry"},
    {"nanotron/old_bench", "", "H100", "h100-nanotron-2024"},
    {"nanotron", "", "H100", "h100-nanotron"},
    {"Ultra-Scale Playbook", "", "H100", "h100-nanotron"},
    {"torchtitan", "", "H100", "h100-torchtitan"},
    {"NeMo", "", "A100-SXM-80", "a100-nemo"},
    {"NeMo", "", "H100", "h100-nemo"},
    {"DGX Cloud", "", "H100", "h100-nemo"},
    {"Megatron-Bridge", "", "H100", "h100-nemo"},
    {"MLPerf Training", "", "H100", "h100-nemo"},
    {"NeMo", "", "GB200", "gb200-nemo"},
    {"DGX Cloud", "", "GB200", "gb200-nemo"},
    {"MLPerf Training", "", "GB200", "gb200-nemo"},
    {"Megatron-Bridge", "", "GB200", "gb200-nemo"},
    {"NeMo", "", "B200", "b200-nemo"},
    {"DGX Cloud", "", "B200", "b200-nemo"},
    {"MLPerf Training", "", "B200", "b200-nemo"},
    {"Megatron-Bridge", "", "B200", "b200-nemo"},
};

// Longer names first where one holds another.
constexpr Known kDevices[] = {
    {"", "", "GH200", "alps"},         {"", "", "GB200", "gb200-nvl72"},   {"", "", "B200", "b200"},
    {"", "", "H200", "h200"},          {"", "", "H100", "dgx-h100"},       {"", "", "A100-SXM-40", "perlmutter-40"},
    {"", "", "A100-SXM-80", "selene"}, {"", "", "A100-SXM4-80", "selene"}, {"", "", "MI300X", "mi300x"},
    {"", "", "MI250X", "frontier"},    {"", "", "Max 1550", "aurora"},
};

bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

SystemMatch match_system(const std::string& source, const std::string& system, const std::string& device) {
  for (const Known& known : kSystems) {
    if (holds(source, known.source) && holds(system, known.system) && holds(device, known.device)) {
      return {known.machine, false};
    }
  }
  for (const Known& known : kDevices) {
    if (holds(device, known.device)) return {known.machine, true};
  }
  return {};
}

}  // namespace ridgeline::simulate
