#include "mesh/watchdog_thread.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "mesh/failure.h"

namespace ridgeline::mesh {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
}

std::string heartbeat_key(int64_t rank) { return fmt::format("watchdog/heartbeat/{}", rank); }

}  // namespace

Watchdog::Thread::Thread(std::shared_ptr<Store> store, bool holds_store, int64_t rank, int64_t world,
                         const WatchdogOptions& options)
    : store_(std::move(store)),
      holds_store_(holds_store),
      rank_(rank),
      world_(world),
      options_(options),
      watched_((rank + 1) % world) {
  if (store_->grows()) options_.beat = std::max(options_.beat, options_.silence / 6);
  // One look a rank every 0.3 s is a load on the one holder; from a thousand ranks on it stays the same in sum.
  options_.poll *= std::max(1.0, static_cast<double>(world) / 1000.0);
  thread_ = std::thread([this] { run(); });
}

Watchdog::Thread::~Thread() {
  {
    const std::lock_guard lock(mutex_);
    stage_ = Stage::stopping;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::Thread::progress(int64_t step, const std::string& phase) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  phase_ = phase;
}

void Watchdog::Thread::finish() {
  std::unique_lock lock(mutex_);
  if (stage_ == Stage::working) stage_ = Stage::finishing;
  changed_.notify_all();
  changed_.wait(lock, [this] { return stage_ != Stage::finishing; });
}

void Watchdog::Thread::fail(FailureNote note, bool communication) {
  std::unique_lock lock(mutex_);
  if (stage_ == Stage::finished) return;
  request_ = Request{std::move(note), communication};
  changed_.notify_all();
  changed_.wait_for(lock, seconds(options_.grace + options_.linger + 10.0), [] { return false; });
}

void Watchdog::Thread::run() {
  // Signals are for the main thread, which may be saving.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (true) {
    try {
      round();
    } catch (const std::exception& error) {
      // Who has finished need not see the others off.
      if (!told_finish_) store_lost(error);
      const std::lock_guard lock(mutex_);
      stage_ = Stage::finished;
      changed_.notify_all();
    }
    std::unique_lock lock(mutex_);
    if (stage_ == Stage::finished || stage_ == Stage::stopping) return;
    const bool waits_for_others = stage_ == Stage::finishing && told_finish_;
    changed_.wait_for(lock, seconds(waits_for_others ? options_.poll / 3 : options_.poll), [&] {
      return request_ || stage_ == Stage::stopping || (stage_ == Stage::finishing && !told_finish_);
    });
  }
}

void Watchdog::Thread::round() {
  std::optional<Request> request;
  Stage stage;
  {
    const std::lock_guard lock(mutex_);
    request = std::exchange(request_, std::nullopt);
    stage = stage_;
  }
  if (stage == Stage::stopping) return;
  // A process that was itself stopped for a while must not count that against another.
  if (Clock::now() - last_round_ > seconds(std::max(2.0, options_.silence / 4))) seen_changed_ = Clock::now();
  last_round_ = Clock::now();
  if (request) answer(*request);
  look_for_note();
  if (Clock::now() >= next_beat_) {
    beat(told_finish_);
    next_beat_ = Clock::now() + seconds(options_.beat);
    watch_next();
  }
  if (stage == Stage::finishing) finish_round();
}

void Watchdog::Thread::beat(bool finished) {
  Heartbeat heartbeat;
  {
    const std::lock_guard lock(mutex_);
    heartbeat.step = step_;
    heartbeat.phase = phase_;
  }
  heartbeat.count = ++count_;
  heartbeat.finished = finished;
  heartbeat.process = process_;
  store_->set(heartbeat_key(rank_), heartbeat.to_text());
}

void Watchdog::Thread::finish_round() {
  int64_t finished = 0;
  if (!told_finish_) {
    told_finish_ = true;
    beat(true);
    finished = store_->add(finished_key, 1);
  } else {
    finished = store_->add(finished_key, 0);
  }
  // The holder's end would look to the others like its death.
  if (holds_store_ && finished < world_) return;
  {
    const std::lock_guard lock(mutex_);
    stage_ = Stage::finished;
  }
  changed_.notify_all();
}

void Watchdog::Thread::look_for_note() {
  if (!store_->has(note_key)) return;
  const auto note = FailureNote::from_text(store_->get(note_key));
  obey(note.value_or(FailureNote{rank_, 1, "another rank failed, and its note cannot be read"}));
}

std::string Watchdog::Thread::age_of_heartbeat() const {
  const double age = std::chrono::duration<double>(Clock::now() - seen_changed_).count();
  return age > 2.0 ? fmt::format(" ({:.0f} s before)", age) : "";
}

std::optional<Heartbeat> Watchdog::Thread::heartbeat_of(int64_t rank) {
  const std::string key = heartbeat_key(rank);
  if (!store_->has(key)) return std::nullopt;
  return Heartbeat::from_text(store_->get(key));
}

void Watchdog::Thread::watch_next() {
  while (watched_ != rank_) {
    const std::optional<Heartbeat> now = heartbeat_of(watched_);
    if (now && now->finished) {
      watched_ = (watched_ + 1) % world_;
      seen_.reset();
      seen_changed_ = Clock::now();
      continue;
    }
    if (now && (!seen_ || seen_->count != now->count)) {
      seen_ = now;
      seen_changed_ = Clock::now();
    }
    if (now) judge(*now);
    // By the round's start, before which a stop of this process shows; one in the middle of a round shows in the next.
    if (last_round_ - seen_changed_ > seconds(options_.silence)) {
      accuse(seen_
                 ? fmt::format("no sign of life for {:.0f} s; it was last {}. Its machine may be down, unreachable or "
                               "overloaded, or its process stopped",
                               options_.silence, seen_->where())
                 : fmt::format("no sign of life at all within {:.0f} s", options_.silence));
    }
    return;
  }
}

void Watchdog::Thread::judge(const Heartbeat& beat) {
  if (!has_ended(beat.process)) return;
  // It may have finished, or left a note, between its last heartbeat and its end.
  look_for_note();
  const std::optional<Heartbeat> last = heartbeat_of(watched_);
  if (last && last->finished) return;
  accuse(
      fmt::format("its process ({}) ended without a word; it was last {}{}. It was killed or it crashed: look for a "
                  "signal, or for the kernel's want of memory (dmesg)",
                  beat.process.process, last ? last->where() : beat.where(), age_of_heartbeat()));
}

}  // namespace ridgeline::mesh
