// What `scale` shows: a table of points for people, one JSON document, a CSV with a line for each point.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "study/scale_result.h"

namespace ridgeline::cli {

struct ScaleView {
  const study::ScaleFile& file;
  const study::Problem& problem;
  const study::ScaleResult& result;
};

nlohmann::json scale_json(const ScaleView& view);
std::string scale_summary(const ScaleView& view);
std::string scale_csv(const ScaleView& view);

}  // namespace ridgeline::cli
