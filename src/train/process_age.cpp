#include "train/process_age.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace ridgeline::train {

double process_age_seconds() {
  // proc(5): the 22nd field of stat is the start in ticks since boot; the second, a name in parentheses, may hold
  // blanks.
  constexpr int kFieldsAfterName = 20;
  std::ostringstream text;
  text << std::ifstream("/proc/self/stat").rdbuf();
  const std::string stat = text.str();
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < kFieldsAfterName && fields >> field; ++i) {
  }
  timespec now{};
  const double ticks = std::strtod(field.c_str(), nullptr);
  const auto tick_rate = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (!fields || ticks <= 0 || tick_rate <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double age = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - ticks / tick_rate;
  return std::max(0.0, age);
}

}  // namespace ridgeline::train
