// Arguments of Megatron-LM as a shell script gives them: private to spec/foreign_megatron.cpp.
#pragma once

#include <string>
#include <vector>

#include "spec/foreign_reading.h"

namespace ridgeline::spec {

struct MegatronArguments {
  std::vector<Setting> settings;   // by "--name"; values as text, empty for a flag; those of the launcher among them
  std::vector<std::string> notes;  // where something was taken that the script alone cannot tell
};

// Throws InputError where the script starts nothing with such arguments.
MegatronArguments megatron_arguments(const std::string& text, const std::string& file);

}  // namespace ridgeline::spec
