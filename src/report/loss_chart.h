// loss_chart: the loss curve of a run as text, for the end of a training and for reading over ssh.
//
//   fmt::print("{}", loss_chart(read_metrics(path)));
//
// Each of the braille dots that make up the picture stands for the mean loss of the steps that fall on its column;
// held-out losses are drawn as 'o'. Scales are linear from the lowest to the highest such mean. Steps whose loss is not
// finite are left out and counted below the picture.
#pragma once

#include <span>
#include <string>

#include "report/metrics.h"

namespace ridgeline::report {

struct ChartOptions {
  int width = 80;      // of every line, labels included; 30 or more
  int height = 12;     // rows of the picture; 2 or more
  bool ascii = false;  // '*' instead of braille
};

// Lines with their ends; "no finite loss to draw\n" where there is none.
std::string loss_chart(std::span<const StepMetrics> metrics, const ChartOptions& options = {});

}  // namespace ridgeline::report
