#include "launch/say_once.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>

namespace ridgeline::launch {

bool is_first_to_say(const std::string& message) {
  // An abstract socket name can be bound once and is gone with the process: nothing stays behind on any disk. The ranks
  // that a launcher started on this machine have one parent.
  const std::string name =
      fmt::format("ridgeline/{}/{}/{:016x}", getuid(), getppid(), std::hash<std::string>()(message));
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return true;  // rather twice than not at all
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::copy_n(name.data(), length, address.sun_path + 1);  // a zero in front makes it abstract
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  const bool taken = bind(descriptor, reinterpret_cast<const sockaddr*>(&address), size) != 0 && errno == EADDRINUSE;
  if (taken) close(descriptor);
  return !taken;
}

void pause_for_others() { std::this_thread::sleep_for(std::chrono::seconds(1)); }

}  // namespace ridgeline::launch
