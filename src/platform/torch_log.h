// What torch's own log may say on stderr. When a peer dies, c10d logs each broken call with a page of C++ frames on
// every rank, beneath which the one line that tells the user the cause is lost; what it has to say reaches us as
// exceptions too.
#pragma once

namespace ridgeline::platform {

// Only fatal messages from now on, unless the user has set TORCH_CPP_LOG_LEVEL. Does its work once.
void quiet_torch_log();

}  // namespace ridgeline::platform
