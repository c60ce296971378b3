// Store: a few small values that all ranks of a job share, through which they find each other, agree and report. One
// rank's process holds it (a TCP server), or a file does, or, where ranks are threads of one process, memory.
//
//   std::shared_ptr<Store> store = Store::open(launch::detect(), 300.0);
//   store->set("answer", "42");           // on one rank
//   store->get("answer");                 // on any, waits until it is there
//
// One Store serves one thread at a time: a call that waits blocks the others. reopen() gives a second connection to the
// same values. Calls throw Failure where the holder cannot be reached, and after `timeout` where a value does not come.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "launch/environment.h"

namespace ridgeline::mesh {

class Store {
 public:
  // Meets the other ranks as the environment says and returns when all are there. Throws Failure that names the missing
  // ranks when they are not within `timeout` seconds.
  static std::shared_ptr<Store> open(const launch::RankEnvironment& environment, double timeout);
  // For ranks that are threads: all share one of these.
  static std::shared_ptr<Store> in_process(double timeout = 60.0);
  // A TCP store without meeting; port 0 with `host` takes a free one, see port().
  static std::shared_ptr<Store> tcp(const std::string& address, int port, bool host, double timeout);
  static std::shared_ptr<Store> file(const std::string& path, double timeout);

  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  std::shared_ptr<Store> reopen(double timeout) const;

  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key);
  bool has(const std::string& key);
  // Adds to a number that starts at 0 and returns the sum.
  int64_t add(const std::string& key, int64_t value);

  // Whether the values are gone when this process ends.
  bool held_here() const;
  // Whether each set() makes something larger for ever, as the file does: then write seldom.
  bool grows() const;
  int port() const;
  // "rank 0's store at nid001:12345"
  const std::string& description() const;

  struct State;  // mesh/c10d_store.h
  explicit Store(std::unique_ptr<State> state);
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace ridgeline::mesh
