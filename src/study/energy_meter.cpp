#include "study/energy_meter.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace ridgeline::study {
namespace {

// "intel-rapl:0" is a package, "intel-rapl:0:1" a part of one that is counted with it.
bool is_package(const std::string& name) {
  return name.starts_with("intel-rapl:") && std::count(name.begin(), name.end(), ':') == 1;
}

}  // namespace

EnergyMeter::EnergyMeter(const std::vector<std::string>& files, const std::string& root) {
  for (const std::string& file : files) add(file, 0);
  if (!counters_.empty()) return;
  const std::string node = root + "/cray/pm_counters/energy", packages = root + "/class/powercap";
  std::error_code error;
  if (std::filesystem::exists(node, error)) {
    add(node, 0);
    return;
  }
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(packages, error)) {
    if (is_package(entry.path().filename().string())) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  for (const std::string& package : found) add(package + "/energy_uj", read(package + "/max_energy_range_uj"));
  if (counters_.empty()) {
    throw InputError(
        "objective.energy = \"measured\": nothing counts energy here: neither {} nor {}/intel-rapl:*/energy_uj is "
        "there; name "
        "counters in objective.energy_counters, or set objective.energy = \"limit\"",
        node, packages);
  }
}

double EnergyMeter::read(const std::string& path) {
  std::ifstream stream(path);
  double value = -1;
  if (!(stream >> value) || !std::isfinite(value) || value < 0) {
    throw InputError(
        "objective.energy = \"measured\": {}: expected a readable file that begins with a number of joules; RAPL's "
        "counters are "
        "root's alone on many systems (chmod a+r, or objective.energy = \"limit\")",
        path);
  }
  return value;
}

void EnergyMeter::add(const std::string& path, double range) {
  counters_.push_back({path, path.ends_with("_uj") ? 1e-6 : 1.0, range, read(path)});
}

void EnergyMeter::mark(double now) {
  for (Counter& counter : counters_) {
    const double value = read(counter.path);
    double grown = value - counter.last;
    if (grown < 0) grown = counter.range > 0 ? grown + counter.range : value;
    counter.last = value;
    if (marks_ > 0) joules_ += grown * counter.joules_per_unit;
  }
  if (marks_ == 0) first_ = now;
  last_ = now;
  ++marks_;
}

double EnergyMeter::mean_watts() const { return last_ > first_ ? joules_ / (last_ - first_) : 0; }

}  // namespace ridgeline::study
