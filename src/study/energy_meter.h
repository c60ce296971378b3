// Energy of this machine while a trial runs, from counters of joules that only grow (or start anew at their range).
//
// Counters are files. Where none are named: Cray's node counter (/sys/cray/pm_counters/energy, "123 J 456 us": the
// whole node), else RAPL's packages (/sys/class/powercap/intel-rapl:N/energy_uj, also on AMD: cores and caches, no
// boards). What a counter covers is what is counted: idle power and other programs too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ridgeline::study {

class EnergyMeter {
 public:
  // `files` may be empty. Throws InputError, saying what was looked for, where nothing can be read. `root`: where /sys
  // lies.
  explicit EnergyMeter(const std::vector<std::string>& files, const std::string& root = "/sys");

  // Reads all counters; `now` in seconds of any one clock.
  void mark(double now);
  // Between the first and the last mark; 0 below two.
  double mean_watts() const;

 private:
  struct Counter {
    std::string path;
    double joules_per_unit = 1;
    double range = 0;  // units after which it starts anew; 0: not known
    double last = 0;
  };

  static double read(const std::string& path);  // throws InputError
  void add(const std::string& path, double range);

  std::vector<Counter> counters_;
  double joules_ = 0;
  double first_ = 0, last_ = 0;  // times of marks
  int64_t marks_ = 0;
};

}  // namespace ridgeline::study
