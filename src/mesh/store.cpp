#include "mesh/store.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "core/error.h"
#include "mesh/c10d_store.h"
#include "mesh/failure.h"
#include "platform/torch_log.h"

namespace ridgeline::mesh {
namespace {

using std::chrono::milliseconds;

milliseconds to_milliseconds(double seconds) { return milliseconds(static_cast<int64_t>(seconds * 1000)); }

// Runs `call` on the store and puts c10d's errors into our words.
template <typename Call>
auto on_store(const Store::State& state, const char* what, const std::string& key, Call call) {
  try {
    return call(*state.store);
  } catch (const std::exception& error) {
    throw CommunicationFailure("{} \"{}\" in {} failed: {}", what, key, state.description, plain_message(error));
  }
}

c10::intrusive_ptr<c10d::Store> prefixed(const std::string& prefix, c10::intrusive_ptr<c10d::Store> store) {
  if (prefix.empty()) return store;
  return c10::make_intrusive<c10d::PrefixStore>(prefix, std::move(store));
}

// Under torchrun the agent, not rank 0, may hold the store, and it outlives restarts of the ranks.
bool agent_holds_store() {
  const char* value = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  return value != nullptr && std::string(value) == "True";
}

std::string attempt_prefix() {
  const char* attempt = std::getenv("TORCHELASTIC_RESTART_COUNT");
  return std::string("ridgeline/attempt_") + (attempt == nullptr ? "0" : attempt);
}

std::shared_ptr<Store> connect(Store::State state, double timeout) {
  platform::quiet_torch_log();
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(state.port);
  options.isServer = state.host;
  options.waitWorkers = false;
  options.timeout = to_milliseconds(timeout);
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(state.address, options);
    state.port = store->getPort();
    state.description =
        fmt::format("{} store at {}:{}", state.prefix.empty() ? "rank 0's" : "torchrun's", state.address, state.port);
    state.store = prefixed(state.prefix, std::move(store));
  } catch (const std::exception& error) {
    throw CommunicationFailure(
        "{} {}:{} failed: {}. Expected rank 0 to hold the job's store there; check that rank 0 runs, that MASTER_ADDR "
        "and "
        "MASTER_PORT are the same on all ranks and that no other job uses the port",
        state.host ? "opening the store at" : "reaching the store at", state.address, state.port, plain_message(error));
  }
  return std::make_shared<Store>(std::make_unique<Store::State>(std::move(state)));
}

std::shared_ptr<Store> open_file(Store::State state, double timeout) {
  platform::quiet_torch_log();
  state.description = fmt::format("the store in {}", state.address);
  try {
    // Without a number of workers no store deletes the file; whoever made its folder does.
    state.store = prefixed(state.prefix, c10::make_intrusive<c10d::FileStore>(state.address, -1));
    state.store->setTimeout(to_milliseconds(timeout));
  } catch (const std::exception& error) {
    throw CommunicationFailure("opening {} failed: {}", state.description, plain_message(error));
  }
  return std::make_shared<Store>(std::make_unique<Store::State>(std::move(state)));
}

// Returns when all ranks have come.
void meet(Store& store, const launch::RankEnvironment& environment, double timeout) {
  const auto deadline = std::chrono::steady_clock::now() + to_milliseconds(timeout);
  store.set(fmt::format("met/{}", environment.rank), "1");
  if (store.add("met", 1) == environment.world) store.set("met/all", "1");
  auto pause = milliseconds(5);
  while (!store.has("met/all")) {
    if (std::chrono::steady_clock::now() > deadline) {
      std::string missing;
      int count = 0;
      for (int rank = 0; rank < environment.world; ++rank) {
        if (store.has(fmt::format("met/{}", rank))) continue;
        if (++count <= 8) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
      }
      throw CommunicationFailure(
          "{} of {} ranks did not come to {} within {:.0f} s: {}{}. Check that they were started and reached this host",
          count, environment.world, store.description(), timeout, missing, count > 8 ? " ..." : "");
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, milliseconds(200));
  }
}

}  // namespace

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::~Store() = default;

std::shared_ptr<Store> Store::in_process(double timeout) {
  platform::quiet_torch_log();
  State state;
  state.store = c10::make_intrusive<c10d::HashStore>();
  state.store->setTimeout(to_milliseconds(timeout));
  state.description = "the store in memory";
  return std::make_shared<Store>(std::make_unique<State>(std::move(state)));
}

std::shared_ptr<Store> Store::tcp(const std::string& address, int port, bool host, double timeout) {
  return connect({State::Kind::tcp, {}, address, port, host, "", ""}, timeout);
}

std::shared_ptr<Store> Store::file(const std::string& path, double timeout) {
  return open_file({State::Kind::file, {}, path, 0, false, "", ""}, timeout);
}

std::shared_ptr<Store> Store::open(const launch::RankEnvironment& environment, double timeout) {
  if (environment.world == 1) return in_process();
  std::shared_ptr<Store> store;
  if (!environment.rendezvous_file.empty()) {
    store = file(environment.rendezvous_file, timeout);
  } else if (environment.launcher == "torchrun" && agent_holds_store()) {
    const State state{State::Kind::tcp,        {}, environment.master_address, environment.master_port, false,
                      attempt_prefix() + "/r", ""};
    store = connect(state, timeout);
  } else {
    store = tcp(environment.master_address, environment.master_port, environment.rank == 0, timeout);
  }
  meet(*store, environment, timeout);
  return store;
}

std::shared_ptr<Store> Store::reopen(double timeout) const {
  State state{state_->kind, {}, state_->address, state_->port, false, state_->prefix, state_->description};
  switch (state_->kind) {
    case State::Kind::tcp:
      return connect(std::move(state), timeout);
    case State::Kind::file:
      return open_file(std::move(state), timeout);
    case State::Kind::memory:
      break;
  }
  state.store = state_->store;  // guards itself
  return std::make_shared<Store>(std::make_unique<State>(std::move(state)));
}

void Store::set(const std::string& key, const std::string& value) {
  on_store(*state_, "setting", key, [&](c10d::Store& store) { store.set(key, value); });
}

std::string Store::get(const std::string& key) {
  return on_store(*state_, "getting", key, [&](c10d::Store& store) { return store.get_to_str(key); });
}

bool Store::has(const std::string& key) {
  return on_store(*state_, "looking for", key, [&](c10d::Store& store) { return store.check({key}); });
}

int64_t Store::add(const std::string& key, int64_t value) {
  return on_store(*state_, "adding to", key, [&](c10d::Store& store) { return store.add(key, value); });
}

bool Store::held_here() const { return state_->host || state_->kind == State::Kind::memory; }
bool Store::grows() const { return state_->kind == State::Kind::file; }
int Store::port() const { return state_->port; }
const std::string& Store::description() const { return state_->description; }

}  // namespace ridgeline::mesh
