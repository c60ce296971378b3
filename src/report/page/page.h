// The page of `ridgeline report`: one HTML file that holds its data, its style, its scripts and the chart library, and
// asks nothing of a network.
//
//   write_whole_file("report.html", page_html("runs/a", data));
//
// page.html, page.css and the scripts of this folder are embedded in the program when it is built (cmake/Page.cmake),
// with Apache ECharts (Apache License 2.0, whose text the page carries), which scripts/set-up installs from npm.
// page.js says which keys `data` has. Text of files that comes with `data` is shown as text whatever stands in it, and
// a content security policy keeps the page from loading anything.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ridgeline::report {

// Throws Failure where the program was built without the chart library.
std::string page_html(const std::string& title, const nlohmann::json& data);

// Number for a page or a table: six significant digits, which no eye tells from all of them.
double rounded(double value);

}  // namespace ridgeline::report
