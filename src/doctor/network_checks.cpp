// Network: what ranks of several machines would talk over. Settings for Slingshot are those of OLCF's user
// documentation for Frontier; without its plugin RCCL falls back to TCP.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/text.h"
#include "doctor/checks.h"

namespace ridgeline::doctor {
namespace {

std::vector<std::string> interfaces(const Host& host) {
  std::vector<std::string> up;
  for (const std::string& name : host.names("/sys/class/net")) {
    const std::string state = host.line("/sys/class/net/" + name + "/operstate").value_or("");
    if (name != "lo" && (state == "up" || state == "unknown")) up.push_back(name);
  }
  return up;
}

bool library_in_path(const Host& host, const std::vector<std::string>& names) {
  std::istringstream folders(host.variable("LD_LIBRARY_PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');) {
    for (const std::string& name : names) {
      if (!folder.empty() && host.has(folder + "/" + name)) return true;
    }
  }
  return false;
}

Finding check_interface_variable(const Host& host, const std::vector<std::string>& up) {
  for (const char* name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    const auto value = host.variable(name);
    if (!value || value->empty() || value->front() == '^') continue;
    std::istringstream wanted(value->front() == '=' ? value->substr(1) : *value);
    for (std::string prefix; std::getline(wanted, prefix, ',');) {
      const bool found =
          std::any_of(up.begin(), up.end(), [&](const std::string& one) { return one.starts_with(prefix); });
      if (found || prefix == "lo") continue;
      return {Grade::problem, "network", fmt::format("{}={}: no interface {} is up", name, *value, prefix),
              up.empty() ? "Unset it" : fmt::format("Name one of {}, or unset it", join(up, ", "))};
    }
  }
  return {};
}

void check_slingshot(const Host& host, const EngineFacts& engine, std::vector<Finding>& findings) {
  const size_t cards = host.names("/sys/class/cxi").size();
  if (cards == 0) return;
  findings.push_back({Grade::good, "network", fmt::format("{} Slingshot card{}", cards, cards == 1 ? "" : "s"), ""});
  if (!engine.has_nccl) return;
  if (!library_in_path(host, {"librccl-net.so", "libnccl-net.so", "librccl-net-ofi.so", "libnccl-net-ofi.so"})) {
    findings.push_back({Grade::problem, "network",
                        "no network plugin of NCCL or RCCL in LD_LIBRARY_PATH: it would fall back to TCP",
                        "Load the site's module (rccl-net-plugin, aws-ofi-rccl or aws-ofi-nccl)"});
  }
  if (!host.variable("FI_MR_CACHE_MONITOR")) {
    findings.push_back({Grade::note, "network", "FI_MR_CACHE_MONITOR is not set: its default, memhooks, can hang",
                        "export FI_MR_CACHE_MONITOR=kdreg2 (or userfaultfd)"});
  }
  if (!host.variable("FI_CXI_DISABLE_HOST_REGISTER")) {
    findings.push_back({Grade::note, "network", "FI_CXI_DISABLE_HOST_REGISTER is not set",
                        "export FI_CXI_DISABLE_HOST_REGISTER=1 where devices send their own memory"});
  }
}

void check_infiniband(const Host& host, std::vector<Finding>& findings) {
  const std::vector<std::string> cards = host.names("/sys/class/infiniband");
  if (cards.empty()) return;
  std::vector<std::string> down;
  for (const std::string& card : cards) {
    // "4: ACTIVE"
    const auto state = host.line("/sys/class/infiniband/" + card + "/ports/1/state");
    if (state && state->find("ACTIVE") == std::string::npos) down.push_back(card);
  }
  findings.push_back({Grade::good, "network",
                      fmt::format("{} RDMA card{}: {}", cards.size(), cards.size() == 1 ? "" : "s", join(cards, ", ")),
                      ""});
  if (!down.empty()) {
    findings.push_back({Grade::note, "network", fmt::format("the link of {} is not active", join(down, ", ")),
                        "Exclude such cards with NCCL_IB_HCA=^NAME, or ask the site"});
  }
  if (host.locked_bytes != unlimited) {
    findings.push_back({Grade::problem, "network",
                        fmt::format("a process may lock {} of memory; RDMA needs to lock its buffers",
                                    format_bytes(static_cast<double>(host.locked_bytes))),
                        "`ulimit -l unlimited`; in a container --ulimit memlock=-1"});
  }
}

}  // namespace

std::vector<Finding> check_network(const Host& host, const EngineFacts& engine) {
  std::vector<Finding> findings;
  const std::vector<std::string> up = interfaces(host);
  findings.push_back(
      {Grade::good, "network",
       up.empty() ? "no interface but the loopback: ranks on this machine only" : "interfaces: " + join(up, ", "), ""});
  if (Finding wrong = check_interface_variable(host, up); !wrong.text.empty()) findings.push_back(std::move(wrong));
  check_slingshot(host, engine, findings);
  check_infiniband(host, findings);
  if (!engine.devices.empty() && engine.devices.front().kind == "cuda" && !engine.has_nccl) {
    findings.push_back({Grade::problem, "network",
                        "this build of Ridgeline is without NCCL or RCCL: devices cannot talk",
                        "Install its headers (cmake/Nccl.cmake says where they are looked for) and build again"});
  }
  return findings;
}

}  // namespace ridgeline::doctor
