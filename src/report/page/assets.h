// The files that a page is made of, as they were when the program was built.
#pragma once

#include <string_view>
#include <vector>

namespace ridgeline::report {

struct PageAssets {
  std::string_view page;  // the template
  std::string_view style;
  std::vector<std::string_view> scripts;  // in the order in which they run
  std::string_view library;               // Apache ECharts; empty where the build had none
  std::string_view licence, notice;       // its texts
};

PageAssets page_assets();

}  // namespace ridgeline::report
