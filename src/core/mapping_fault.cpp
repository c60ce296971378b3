#include "core/mapping_fault.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string_view>

namespace ridgeline {
namespace {

// The handler may run at any moment on any thread, so it takes no lock: it walks a list whose members are never freed
// and whose paths never change. A member without a begin is unused, and serves the next mapping of the same path.
struct Mapping {
  explicit Mapping(const std::string& file) : path(file) {}
  const std::string path;
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  Mapping* next = nullptr;
};

std::atomic<Mapping*> first_mapping{nullptr};
struct sigaction before{};

std::mutex& changes() {
  static std::mutex mutex;
  return mutex;
}

void say(std::string_view text) { [[maybe_unused]] const ssize_t ignored = ::write(2, text.data(), text.size()); }

void handle(int, siginfo_t* info, void*) {
  const bool is_access = info->si_code > 0;  // and no kill(2), which has no address
  const auto at = is_access ? reinterpret_cast<uintptr_t>(info->si_addr) : 0;
  for (const Mapping* mapping = first_mapping.load(); mapping != nullptr; mapping = mapping->next) {
    const uintptr_t begin = mapping->begin.load();
    if (begin == 0 || at < begin || at >= mapping->end.load()) continue;
    say("ridgeline: ");
    say({mapping->path.data(), mapping->path.size()});
    say(": cannot be read any more: it was cut short while it was in use, or its disk failed; files in use must only "
        "be "
        "replaced as a whole (write another, then rename it)\n");
    ::_exit(1);
  }
  ::sigaction(SIGBUS, &before, nullptr);  // the access is repeated on return, and faults again
}

void install() {
  struct sigaction action{};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &before);
}

}  // namespace

void watch_mapping(const std::string& path, const void* begin, size_t size) {
  static std::once_flag installed;
  std::call_once(installed, install);
  const std::lock_guard lock(changes());
  Mapping* unused = first_mapping.load();
  while (unused != nullptr && (unused->begin.load() != 0 || unused->path != path)) unused = unused->next;
  if (unused == nullptr) {
    unused = new Mapping(path);
    unused->next = first_mapping.load();
    first_mapping.store(unused);
  }
  const auto address = reinterpret_cast<uintptr_t>(begin);
  unused->end.store(address + size);
  unused->begin.store(address);
}

void forget_mapping(const void* begin) {
  const std::lock_guard lock(changes());
  const auto address = reinterpret_cast<uintptr_t>(begin);
  for (Mapping* mapping = first_mapping.load(); mapping != nullptr; mapping = mapping->next) {
    if (mapping->begin.load() == address) mapping->begin.store(0);
  }
}

}  // namespace ridgeline
