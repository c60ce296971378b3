#include "mesh/shared_memory/messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace ridgeline::mesh::shared_memory {
namespace {

constexpr int64_t kUnit = 16;
struct Head {
  int64_t bytes;
  int64_t tag;
};
static_assert(sizeof(Head) == kUnit);

int64_t round_up(int64_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

// One end's view of a ring. Positions and room are multiples of kUnit always.
struct Ring {
  Channel& channel;
  std::byte* data;
  int64_t capacity;

  Ring(const Segment& segment, int64_t from, int64_t to)
      : channel(segment.channel(from, to)),
        data(segment.channel_data(from, to)),
        capacity(segment.shape().channel_bytes) {}

  int64_t filled() const { return static_cast<int64_t>(channel.written.load() - channel.read.load()); }
  int64_t room() const { return capacity - filled(); }
  // The other end may go on while a large message still moves.
  int64_t piece() const { return capacity / 4; }

  void write(const void* from, int64_t bytes) {
    const int64_t at = static_cast<int64_t>(channel.written.load() & static_cast<uint64_t>(capacity - 1));
    const int64_t first = std::min(bytes, capacity - at);
    std::memcpy(data + at, from, static_cast<std::size_t>(first));
    std::memcpy(data, static_cast<const std::byte*>(from) + first, static_cast<std::size_t>(bytes - first));
    channel.written.fetch_add(static_cast<uint64_t>(round_up(bytes)));
  }
  void read(void* to, int64_t bytes) {
    const int64_t at = static_cast<int64_t>(channel.read.load() & static_cast<uint64_t>(capacity - 1));
    const int64_t first = std::min(bytes, capacity - at);
    std::memcpy(to, data + at, static_cast<std::size_t>(first));
    std::memcpy(static_cast<std::byte*>(to) + first, data, static_cast<std::size_t>(bytes - first));
    channel.read.fetch_add(static_cast<uint64_t>(round_up(bytes)));
  }
};

}  // namespace

Messages::Messages(const Membership& membership)
    : membership_(membership), peers_(static_cast<std::size_t>(membership.size())), helper_(*this) {}

std::shared_ptr<Message> Messages::send(const void* data, int64_t bytes, int64_t peer, int64_t tag,
                                        std::shared_ptr<const void> keep) {
  auto message = std::make_shared<Message>();
  message->data = static_cast<std::byte*>(const_cast<void*>(data));
  message->bytes = bytes, message->peer = peer, message->tag = tag, message->keep = std::move(keep);
  return start(true, std::move(message));
}

std::shared_ptr<Message> Messages::receive(void* data, int64_t bytes, int64_t peer, int64_t tag,
                                           std::shared_ptr<const void> keep) {
  auto message = std::make_shared<Message>();
  message->data = static_cast<std::byte*>(data);
  message->bytes = bytes, message->peer = peer, message->tag = tag, message->keep = std::move(keep);
  return start(false, std::move(message));
}

std::shared_ptr<Message> Messages::start(bool sends, std::shared_ptr<Message> message) {
  bool left_over = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw Failure("the group was closed");
    Peer& peer = peers_[static_cast<std::size_t>(message->peer)];
    message->number = ++started_;
    ++pending_;
    if (sends) {
      peer.sends.push_back(message);
    } else if (!claim_stray(peer, message)) {
      peer.receives.push_back(message);
    }
    progress();
    left_over = pending_ > 0;
  }
  if (left_over) helper_.notice();
  return message;
}

void Messages::note_oldest() {
  uint64_t oldest = 0;
  const auto consider = [&](const Message& message) {
    if (oldest == 0 || message.number < oldest) oldest = message.number;
  };
  for (const Peer& peer : peers_) {
    if (!peer.sends.empty()) consider(*peer.sends.front());
    if (!peer.receives.empty()) consider(*peer.receives.front());
    if (peer.reading && !peer.reading_stray) consider(*peer.reading);
    for (const auto& stray : peer.strays) {
      if (stray->claim) consider(*stray->claim);
    }
  }
  oldest_ = waiters_ > 0 || closed_ ? 0 : oldest;
}

void Messages::wake(int64_t peer) {
  Seat& seat = membership_.seat(peer);
  if (seat.message_sleepers.load() > 0) ring(seat.message_bell);
}

void Messages::progress() {
  if (closed_) return;
  finished_some_ = false;
  for (int64_t peer = 0; peer < membership_.size(); ++peer) {
    if (peer == membership_.rank()) continue;
    while (push(peer)) wake(peer);
    while (pull(peer)) wake(peer);
  }
  note_oldest();
  if (finished_some_) wake(membership_.rank());  // another thread of this rank may wait for it
}

// Moves at most one piece; false where nothing could be moved.
bool Messages::push(int64_t peer) {
  auto& sends = peers_[static_cast<std::size_t>(peer)].sends;
  if (sends.empty()) return false;
  Ring to(membership_.segment(), membership_.rank(), peer);
  Message& message = *sends.front();
  int64_t room = std::min(to.room(), to.piece());
  if (room == 0) return false;
  if (!message.head_moved) {
    const Head head{message.bytes, message.tag};
    to.write(&head, kUnit);
    message.head_moved = true;
    room -= kUnit;
  }
  const int64_t bytes = std::min(room, message.bytes - message.moved);
  if (bytes > 0) to.write(message.data + message.moved, bytes);
  message.moved += bytes;
  if (message.moved == message.bytes) {
    finish(message);
    sends.pop_front();
  }
  return true;
}

bool Messages::pull(int64_t peer) {
  Peer& state = peers_[static_cast<std::size_t>(peer)];
  if (!state.reading && state.receives.empty()) return false;
  Ring from(membership_.segment(), peer, membership_.rank());
  int64_t filled = std::min(from.filled(), from.piece());
  if (filled == 0) return false;
  if (!state.reading) {
    Head head{};
    from.read(&head, kUnit);
    filled -= kUnit;
    begin_reading(peer, head.bytes, head.tag);
  }
  const bool stray = state.reading_stray != nullptr;
  Message* message = state.reading.get();
  std::byte* data = stray ? state.reading_stray->data.data() : message->data;
  const int64_t total = stray ? static_cast<int64_t>(state.reading_stray->data.size()) : message->bytes;
  int64_t& moved = message->moved;
  const int64_t bytes = std::min(filled, total - moved);
  if (bytes > 0) from.read(data + moved, bytes);
  moved += bytes;
  if (moved == total) end_reading(peer);
  return true;
}

// A stray has a message of its own too, which counts how far it has been read.
void Messages::begin_reading(int64_t peer, int64_t bytes, int64_t tag) {
  Peer& state = peers_[static_cast<std::size_t>(peer)];
  RIDGELINE_ASSERT(bytes >= 0);
  const auto receive = std::find_if(state.receives.begin(), state.receives.end(),
                                    [&](const auto& message) { return message->tag == tag; });
  if (receive != state.receives.end() && (*receive)->bytes == bytes) {
    state.reading = *receive;
    state.receives.erase(receive);
    return;
  }
  auto stray = std::make_shared<Stray>();
  stray->tag = tag;
  stray->data.resize(static_cast<std::size_t>(bytes));
  if (receive != state.receives.end()) {  // of another size: it fails when the message has been read
    stray->claim = *receive;
    state.receives.erase(receive);
  }
  state.strays.push_back(stray);
  state.reading_stray = std::move(stray);
  state.reading = std::make_shared<Message>();
  state.reading->number = started_;
}

void Messages::end_reading(int64_t peer) {
  Peer& state = peers_[static_cast<std::size_t>(peer)];
  const std::shared_ptr<Message> message = std::exchange(state.reading, nullptr);
  const std::shared_ptr<Stray> stray = std::exchange(state.reading_stray, nullptr);
  if (!stray) return finish(*message);
  stray->whole = true;
  if (!stray->claim) return;
  deliver(*stray->claim, *stray);
  std::erase(state.strays, stray);
}

bool Messages::claim_stray(Peer& peer, const std::shared_ptr<Message>& receive) {
  const auto stray = std::find_if(peer.strays.begin(), peer.strays.end(), [&](const auto& candidate) {
    return candidate->tag == receive->tag && !candidate->claim;
  });
  if (stray == peer.strays.end()) return false;
  if ((*stray)->whole) {
    deliver(*receive, **stray);
    peer.strays.erase(stray);
  } else {
    (*stray)->claim = receive;
  }
  return true;
}

void Messages::deliver(Message& receive, const Stray& stray) {
  if (static_cast<int64_t>(stray.data.size()) != receive.bytes) {
    receive.error = std::make_exception_ptr(Failure("{} sent {} bytes with tag {} where {} were expected",
                                                    membership_.text({receive.peer}), stray.data.size(), stray.tag,
                                                    receive.bytes));
  } else if (receive.bytes > 0) {
    std::memcpy(receive.data, stray.data.data(), stray.data.size());
  }
  finish(receive);
}

void Messages::finish(Message& message) {
  message.keep = nullptr;
  --pending_;
  finished_some_ = true;
  message.done = true;
}

void Messages::sleep_unless(std::unique_lock<std::mutex>& lock, const std::function<bool()>& ready) {
  Seat& seat = membership_.seat();
  const uint32_t bell = seat.message_bell.load();
  seat.message_sleepers.fetch_add(1);
  progress();
  if (!ready()) {
    lock.unlock();
    sleep_on(seat.message_bell, bell, membership_.nap_milliseconds());
    lock.lock();
  }
  seat.message_sleepers.fetch_sub(1);
}

void Messages::wait(Message& message) {
  std::unique_lock lock(mutex_);
  ++waiters_;
  const auto moved = [&] {
    progress();
    return message.done.load() || closed_;
  };
  try {
    if (!moved() && !membership_.patience().outlast(moved)) {
      Membership::Vigil vigil(membership_);
      while (!message.done.load() && !closed_) {
        vigil.check({message.peer}, [&](int64_t) { return !moved(); });
        sleep_unless(lock, [&] { return message.done.load() || closed_; });
      }
    }
  } catch (...) {
    --waiters_;
    note_oldest();
    throw;
  }
  --waiters_;
  note_oldest();
  if (!message.done.load() && error_) std::rethrow_exception(error_);
  if (!message.done.load()) throw Failure("the group was closed");
  if (message.error) std::rethrow_exception(message.error);
}

void Messages::help() {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return pending_ == 0 || closed_; };
  try {
    while (!ready()) sleep_unless(lock, ready);
  } catch (...) {
    error_ = std::current_exception();
    closed_ = true;
  }
}

void Messages::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    note_oldest();
  }
  ring(membership_.seat().message_bell);
}

}  // namespace ridgeline::mesh::shared_memory
