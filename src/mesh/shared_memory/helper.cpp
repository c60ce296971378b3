#include "mesh/shared_memory/helper.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>
#include <vector>

namespace ridgeline::mesh::shared_memory {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(1);
constexpr int kIdleLooks = 50;

}  // namespace

class Attendant {
 public:
  // The process's one, for as long as somebody holds it.
  static std::shared_ptr<Attendant> get() {
    static std::mutex mutex;
    static std::weak_ptr<Attendant> known;
    const std::lock_guard lock(mutex);
    std::shared_ptr<Attendant> attendant = known.lock();
    if (!attendant) known = attendant = std::make_shared<Attendant>();
    return attendant;
  }

  Attendant() : thread_([this] { run(); }) {}
  ~Attendant() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void add(Helper* helper) {
    const std::lock_guard lock(mutex_);
    helpers_.push_back(helper);
  }
  void remove(Helper* helper) {
    const std::lock_guard lock(mutex_);
    std::erase(helpers_, helper);
  }

  void wake() {
    if (awake_.load()) return;
    {
      const std::lock_guard lock(mutex_);
      awake_ = true;
    }
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    int idle_looks = 0;
    while (!stop_) {
      if (awake_.load()) {
        changed_.wait_for(lock, kBetweenLooks, [&] { return stop_; });
      } else {
        changed_.wait(lock, [&] { return stop_ || awake_.load(); });
      }
      idle_looks = look_round() ? 0 : idle_looks + 1;
      if (idle_looks < kIdleLooks) continue;
      idle_looks = 0;
      // Who notes something pending from here on sees that it must wake; what was noted before is seen by this look.
      awake_ = false;
      if (look_round()) awake_ = true;
    }
  }

  bool look_round() {
    bool pending = false;
    for (Helper* helper : helpers_) pending = helper->look() || pending;
    return pending;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Helper*> helpers_;
  std::atomic<bool> awake_{false};
  bool stop_ = false;
  std::thread thread_;  // last: starts when all else is there
};

Helper::Helper(Client& client) : client_(client), attendant_(Attendant::get()) { attendant_->add(this); }

Helper::~Helper() {
  attendant_->remove(this);
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Helper::notice() { attendant_->wake(); }

bool Helper::look() {
  const uint64_t oldest = client_.oldest_pending();
  const bool late = oldest != 0 && oldest == last_seen_;
  last_seen_ = oldest;
  if (late) {
    const std::lock_guard lock(mutex_);
    wanted_ = true;
    try {
      if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      // The next look tries again; until then, whoever waits does it.
    }
    changed_.notify_all();
  }
  return oldest != 0;
}

void Helper::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || wanted_; });
    if (stop_) return;
    wanted_ = false;
    lock.unlock();
    client_.help();
    lock.lock();
  }
}

}  // namespace ridgeline::mesh::shared_memory
