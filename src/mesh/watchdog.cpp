#include "mesh/watchdog.h"

#include <unistd.h>

#include <algorithm>

#include "mesh/failure.h"
#include "mesh/watchdog_thread.h"

namespace ridgeline::mesh {

Watchdog::Watchdog(const std::shared_ptr<Store>& store, int64_t rank, int64_t world, const WatchdogOptions& options)
    : rank_(rank), world_(world) {
  if (store == nullptr || world <= 1) return;
  // A call that the holder does not answer must not outlast the silence that would give it away.
  thread_ =
      std::make_unique<Thread>(store->reopen(std::max(options.silence, 5.0)), store->held_here(), rank, world, options);
}

Watchdog::~Watchdog() = default;

void Watchdog::progress(int64_t step, const std::string& phase) {
  if (thread_) thread_->progress(step, phase);
}

void Watchdog::finish() {
  if (thread_) thread_->finish();
}

void Watchdog::fail(const std::exception& error) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  const FailureNote note{rank_, ours != nullptr ? ours->exit_code() : 1,
                         ours != nullptr ? error.what() : plain_message(error), true, this_process().host};
  if (thread_) thread_->fail(note, dynamic_cast<const CommunicationFailure*>(&error) != nullptr);
  print_line(world_ > 1 ? note.line() : fmt::format("ridgeline: {}\n", note.message));
  ::_exit(note.exit_code);
}

}  // namespace ridgeline::mesh
