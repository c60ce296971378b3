// How a job ends: the half of Watchdog::Thread that does not return.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "launch/say_once.h"
#include "mesh/failure.h"
#include "mesh/watchdog_thread.h"

namespace ridgeline::mesh {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
}

// Between two looks while something is expected at any moment.
constexpr auto short_pause = std::chrono::milliseconds(50);
// A claim and its note are two messages of one rank; this long is more than ever lies between them.
constexpr double longest_claim = 2.0;

}  // namespace

void Watchdog::Thread::answer(const Request& request) {
  own_failure_ = request.note;
  own_failure_is_consequence_ = request.communication;
  FailureNote note = request.note;
  if (request.communication) {
    const std::vector<std::optional<Heartbeat>> before = all_heartbeats();
    const Clock::time_point deadline = Clock::now() + seconds(options_.grace);
    while (Clock::now() < deadline) {
      look_for_note();
      if (Clock::now() >= next_beat_) {
        beat(false);
        next_beat_ = Clock::now() + seconds(options_.beat);
      }
      watch_next();
      std::this_thread::sleep_for(short_pause);
    }
    note.message += suspicions(before);
  }
  raise(note);
}

std::vector<std::optional<Heartbeat>> Watchdog::Thread::all_heartbeats() {
  std::vector<std::optional<Heartbeat>> all(static_cast<std::size_t>(std::min(world_, most_heartbeats_read)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank] = heartbeat_of(static_cast<int64_t>(rank));
  return all;
}

std::string Watchdog::Thread::suspicions(const std::vector<std::optional<Heartbeat>>& before) {
  const std::vector<std::optional<Heartbeat>> now = all_heartbeats();
  const bool silence_tells = options_.grace >= 2.5 * options_.beat;
  std::string text;
  int64_t slowest = rank_;
  for (std::size_t index = 0; index < now.size(); ++index) {
    const auto rank = static_cast<int64_t>(index);
    if (rank == rank_ || !now[index] || now[index]->finished) continue;
    const bool silent = silence_tells && before[index] && before[index]->count == now[index]->count;
    if (silent || has_ended(now[index]->process)) {
      text += fmt::format(". Rank {} gave no sign of life meanwhile; it was last {}", rank, now[index]->where());
    }
    const auto& slowest_beat = now[static_cast<std::size_t>(slowest)];
    if (slowest_beat && now[index]->step < slowest_beat->step) slowest = rank;
  }
  if (text.empty() && slowest != rank_) {
    text = fmt::format(". Rank {} is behind: {}", slowest, now[static_cast<std::size_t>(slowest)]->where());
  }
  return text;
}

void Watchdog::Thread::accuse(const std::string& message) {
  raise({watched_, 1, message, false, seen_ ? seen_->process.host : ""});
}

void Watchdog::Thread::raise(const FailureNote& note) {
  if (store_->add(claims_key, 1) != 1) {
    const Clock::time_point deadline = Clock::now() + seconds(longest_claim);
    while (Clock::now() < deadline) {
      look_for_note();
      std::this_thread::sleep_for(short_pause);
    }
    // Whoever was first died before it could say why.
  }
  // Said before it is written, so that no other rank of this machine says it a second time.
  store_->add(said_key(), 1);
  print_line(note.line());
  store_->set(note_key, note.to_text());
  leave(note);
}

std::string Watchdog::Thread::said_key() const { return "watchdog/said/" + process_.place; }

void Watchdog::Thread::obey(const FailureNote& note) {
  bool say = true;
  try {
    say = store_->add(said_key(), 1) == 1;
  } catch (const std::exception&) {
    // The holder has left already; twice said is better than not at all.
  }
  if (say) print_line(note.line());
  leave(note);
}

void Watchdog::Thread::leave(const FailureNote& note) {
  try {
    int64_t seen = store_->add(seen_key, 1);
    const Clock::time_point deadline = Clock::now() + seconds(options_.linger);
    const int64_t readers = world_ - (note.by_itself ? 0 : 1);
    while (holds_store_ && Clock::now() < deadline) {
      if (seen + store_->add(finished_key, 0) >= readers) break;
      std::this_thread::sleep_for(short_pause);
      seen = store_->add(seen_key, 0);
    }
  } catch (const std::exception&) {
    // Nothing is owed to a store that is gone.
  }
  ::_exit(note.exit_code);
}

void Watchdog::Thread::store_lost(const std::exception& error) {
  if (own_failure_ && !own_failure_is_consequence_) {
    print_line(own_failure_->line());
    ::_exit(own_failure_->exit_code);
  }
  // All ranks see this at once, and there is no store to agree in: one of each machine says it.
  const std::string line = fmt::format(
      "ridgeline: lost {}: the process that holds it was killed or crashed, or its machine is down. Look there for a "
      "signal, or for the kernel's want of memory (dmesg). First seen as: {}\n",
      store_->description(), own_failure_ ? own_failure_->message : error.what());
  if (launch::is_first_to_say(store_->description())) {
    print_line(line);
    launch::pause_for_others();
  }
  ::_exit(1);
}

}  // namespace ridgeline::mesh
