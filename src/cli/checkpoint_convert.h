// `ridgeline checkpoint import` and `export`: weights from and to Hugging Face's form.
#pragma once

#include <CLI/CLI.hpp>

namespace ridgeline::cli {

void add_import_command(CLI::App& checkpoint);
void add_export_command(CLI::App& checkpoint);

}  // namespace ridgeline::cli
