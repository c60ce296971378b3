#include "mesh/heartbeat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "launch/boot.h"

namespace ridgeline::mesh {
namespace {

struct ProcessState {
  char state = 'X';
  uint64_t start_time = 0;
};

// From /proc/PID/stat: "PID (NAME) STATE ..." with the start time as field 22. NAME may hold spaces and parentheses.
std::optional<ProcessState> read_state(int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const auto end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end_of_name + 1));
  ProcessState state;
  std::string skipped;
  fields >> state.state;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> state.start_time;
  if (!fields) return std::nullopt;
  return state;
}

std::string link_target(const char* path) {
  std::array<char, 128> target{};
  const ssize_t length = readlink(path, target.data(), target.size() - 1);
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : std::string();
}

constexpr std::size_t longest_phase = 200;

// Phases come from other processes and go to a terminal.
std::string printable(std::string text) {
  if (text.size() > longest_phase) text.resize(longest_phase);
  for (char& character : text) {
    if (static_cast<unsigned char>(character) < 0x20) character = ' ';
  }
  return text;
}

}  // namespace

ProcessName this_process() {
  ProcessName name;
  const std::string boot = launch::boot_identity();
  const std::string processes = link_target("/proc/self/ns/pid");
  if (!boot.empty() && !processes.empty()) name.place = boot + "/" + processes;
  name.process = getpid();
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) name.host = host.data();
  if (const auto state = read_state(name.process)) name.start_time = state->start_time;
  return name;
}

bool has_ended(const ProcessName& name) {
  static const std::string here = this_process().place;
  if (here.empty() || name.place != here || name.process <= 0) return false;
  const std::optional<ProcessState> state = read_state(name.process);
  // A zombie has ended too: only its parent has not looked yet.
  return !state || state->start_time != name.start_time || state->state == 'Z' || state->state == 'X';
}

std::string Heartbeat::to_text() const {
  const nlohmann::json json = {{"count", count},
                               {"step", step},
                               {"phase", printable(phase)},
                               {"finished", finished},
                               {"place", process.place},
                               {"process", process.process},
                               {"start_time", process.start_time},
                               {"host", process.host}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<Heartbeat> Heartbeat::from_text(const std::string& text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    Heartbeat beat;
    beat.count = json.at("count").get<uint64_t>();
    beat.step = json.at("step").get<int64_t>();
    beat.phase = printable(json.at("phase").get<std::string>());
    beat.finished = json.at("finished").get<bool>();
    beat.process.place = json.at("place").get<std::string>();
    beat.process.process = json.at("process").get<int64_t>();
    beat.process.start_time = json.at("start_time").get<uint64_t>();
    beat.process.host = printable(json.value("host", std::string()));
    return beat;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string Heartbeat::where() const {
  const std::string in = phase.empty() ? "" : fmt::format("in \"{}\"", phase);
  if (step < 0) return in.empty() ? "before the first step" : in;
  return fmt::format("at step {}{}{}", step, in.empty() ? "" : ", ", in);
}

}  // namespace ridgeline::mesh
