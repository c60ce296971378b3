#include "cli/guarded.h"

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "core/error.h"
#include "launch/environment.h"

namespace ridgeline::cli {
namespace {

// Wrong input is found by every rank alike: one rank of each machine says so.
bool is_spokesman() {
  try {
    return launch::detect().local_rank == 0;
  } catch (const Error&) {
    return true;
  }
}

void say(const std::string& message) { std::fprintf(stderr, "ridgeline: %s\n", message.c_str()); }

}  // namespace

int guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const InputError& error) {
    if (is_spokesman()) say(error.what());
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
