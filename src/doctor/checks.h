// What of a machine Ridgeline can use, what is set in a way that hurts, and how to mend it. Each check looks at one
// subject and costs milliseconds; none changes anything.
#pragma once

#include <string>
#include <vector>

#include "doctor/host.h"

namespace ridgeline::doctor {

enum class Grade {
  good,
  note,    // works, and could be better
  problem  // something that Ridgeline needs does not work
};
std::string to_string(Grade grade);

struct Finding {
  Grade grade = Grade::good;
  std::string subject;  // "memory", "network" ...
  std::string text;     // what is
  std::string advice;   // what to do; empty where all is well
};

std::vector<Finding> check_engine(const EngineFacts& engine);
std::vector<Finding> check_devices(const Host& host, const EngineFacts& engine);
std::vector<Finding> check_memory(const Host& host);
std::vector<Finding> check_threads(const Host& host);
std::vector<Finding> check_network(const Host& host, const EngineFacts& engine);
std::vector<Finding> check_launcher(const Host& host);

// All of them, in this order.
std::vector<Finding> check_all(const Host& host, const EngineFacts& engine);

}  // namespace ridgeline::doctor
