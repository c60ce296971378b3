#include "mesh/failure.h"

#include <c10/util/Exception.h>

namespace ridgeline::mesh {

std::string plain_message(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  if (const auto frames = text.find("\nException raised from"); frames != std::string::npos) text.resize(frames);
  // What gloo advises is for its authors, not for the user of a trainer.
  if (const auto advice = text.find(" This is typically caused by"); advice != std::string::npos) text.resize(advice);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  for (char& character : text) {
    if (character == '\n') character = ' ';
  }
  return text;
}

}  // namespace ridgeline::mesh
