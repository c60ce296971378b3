#include "simulate/prediction.h"

#include "core/error.h"

namespace ridgeline::simulate {

std::string to_string(Fit fit) {
  switch (fit) {
    case Fit::fits:
      return "fits";
    case Fit::at_risk:
      return "at risk";
    case Fit::does_not_fit:
      return "does not fit";
  }
  throw InternalError("Fit {}", static_cast<int>(fit));
}

}  // namespace ridgeline::simulate
