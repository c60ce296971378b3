#include "cli/guarded.h"

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "core/error.h"
#include "launch/environment.h"
#include "launch/say_once.h"

namespace ridgeline::cli {
namespace {

bool has_peers() {
  try {
    return launch::detect().local_world > 1;
  } catch (const Error&) {
    return true;  // a half-set environment is most likely that of all ranks
  }
}

void say(const std::string& message) { std::fprintf(stderr, "ridgeline: %s\n", message.c_str()); }

// Wrong input is mostly found by every rank alike, and then one of each machine says so; but where a single rank finds
// it, that one must not be mute.
void say_for_all(const std::string& message) {
  const bool peers = has_peers();
  if (peers && !launch::is_first_to_say(message)) return;
  say(message);
  if (peers) launch::pause_for_others();
}

}  // namespace

int guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const InputError& error) {
    say_for_all(error.what());
    return error.exit_code();
  } catch (const Error& error) {
    say(error.what());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    say("out of memory on the host");
    return kFailed;
  } catch (const std::exception& error) {
    say(error.what());
    return kFailed;
  }
}

}  // namespace ridgeline::cli
