#include "platform/torch_log.h"

#include <c10/util/Logging.h>

#include <cstdlib>
#include <mutex>

namespace ridgeline::platform {

void quiet_torch_log() {
  static std::once_flag once;
  std::call_once(once, [] {
    // The variable is what all of torch's logging back ends obey; it is read anew here.
    setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
    c10::initLogging();
  });
}

}  // namespace ridgeline::platform
