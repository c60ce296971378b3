// The thread of a Watchdog: all that touches the store happens in it, so that a store that does not answer can hold up
// nobody else.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "mesh/failure_note.h"
#include "mesh/heartbeat.h"
#include "mesh/watchdog.h"

namespace ridgeline::mesh {

class Watchdog::Thread {
 public:
  using Clock = std::chrono::steady_clock;

  // `holds_store`: the store's values are gone when this process ends.
  Thread(std::shared_ptr<Store> store, bool holds_store, int64_t rank, int64_t world, const WatchdogOptions& options);
  ~Thread();

  void progress(int64_t step, const std::string& phase);
  // Returns when the store knows, and on the holder when all ranks have finished.
  void finish();
  // Returns only where the thread could not end the process in time.
  void fail(FailureNote note, bool communication);

 private:
  enum class Stage { working, finishing, finished, stopping };
  struct Request {
    FailureNote note;
    bool communication = false;
  };

  void run();
  void round();
  void beat(bool finished);
  void finish_round();

  void look_for_note();
  void watch_next();
  std::optional<Heartbeat> heartbeat_of(int64_t rank);
  void judge(const Heartbeat& beat);
  // " (7 s before)" where what the watched rank last said is old, as where heartbeats are rare.
  std::string age_of_heartbeat() const;

  // watchdog_ending.cpp
  void answer(const Request& request);
  std::string suspicions(const std::vector<std::optional<Heartbeat>>& before);
  std::vector<std::optional<Heartbeat>> all_heartbeats();
  [[noreturn]] void accuse(const std::string& message);  // of the watched rank
  [[noreturn]] void raise(const FailureNote& note);      // unless another rank was first
  [[noreturn]] void obey(const FailureNote& note);       // of another rank
  [[noreturn]] void leave(const FailureNote& note);
  [[noreturn]] void store_lost(const std::exception& error);
  std::string said_key() const;

  static constexpr const char* claims_key = "watchdog/claims";
  static constexpr const char* note_key = "watchdog/note";
  static constexpr const char* seen_key = "watchdog/seen";
  static constexpr const char* finished_key = "watchdog/finished";
  // Reading all heartbeats costs a message for each; in a larger world the watch of the next rank has to do.
  static constexpr int64_t most_heartbeats_read = 1024;

  const std::shared_ptr<Store> store_;
  const bool holds_store_;
  const int64_t rank_;
  const int64_t world_;
  WatchdogOptions options_;
  const ProcessName process_ = this_process();

  // Of the thread alone.
  uint64_t count_ = 0;
  Clock::time_point next_beat_{};
  Clock::time_point last_round_ = Clock::now();
  int64_t watched_;
  std::optional<Heartbeat> seen_;                  // of the watched rank
  Clock::time_point seen_changed_ = Clock::now();  // when its heartbeat last was new
  bool told_finish_ = false;
  std::optional<FailureNote> own_failure_;
  bool own_failure_is_consequence_ = false;  // of another rank's, most likely

  // Shared with the callers.
  std::mutex mutex_;
  std::condition_variable changed_;
  Stage stage_ = Stage::working;
  std::optional<Request> request_;
  int64_t step_ = -1;
  std::string phase_ = "starting";

  std::thread thread_;  // last: starts when all else is there
};

}  // namespace ridgeline::mesh
