#include "study/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

namespace ridgeline::study {
namespace {

using search::Outcome;

constexpr size_t kLongestMessage = 300;

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// The last line that holds `part`.
std::string line_with(const std::string& text, const std::string& part) {
  const size_t at = text.rfind(part);
  if (at == std::string::npos) return "";
  const size_t begin = text.rfind('\n', at);
  const size_t start = begin == std::string::npos ? 0 : begin + 1;
  return text.substr(start, text.find('\n', at) - start).substr(0, kLongestMessage);
}

// What `ridgeline` said last for people, else the last line of all: a launcher's own last words say only that it ended.
std::string last_line(const std::string& text) {
  if (const std::string said = line_with(text, "ridgeline: "); !said.empty()) return said;
  const size_t end = text.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return "";
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin + 1) + 1)
      .substr(0, kLongestMessage);
}

// Bytes behind the last `before` of the text.
double bytes_after(const std::string& text, const std::string& before) {
  const size_t at = text.rfind(before);
  return at == std::string::npos ? 0 : parse_bytes(text.substr(at + before.size(), 40));
}

// Ours: "out of memory: 1.50 GiB more were wanted". A device's allocator: "Tried to allocate 2.00 GiB. GPU 0 has a total
// capacity of 63.98 GiB of which 1.20 GiB is free".
double missing_bytes(const std::string& log) {
  if (const double wanted = bytes_after(log, "out of memory: "); wanted > 0) return wanted;
  const double wanted = bytes_after(log, "Tried to allocate ");
  return std::max(0.0, wanted - bytes_after(log, "of which "));
}

constexpr std::array kMemoryWords = {"out of memory", "out-of-memory", "std::bad_alloc", "OutOfMemoryError",
                                     "Cannot allocate memory"};
constexpr std::array kInfrastructureWords = {"Address already in use", "Connection refused", "Connection reset",
                                             "Connection closed by peer", "Broken pipe", "No space left on device",
                                             "Stale file handle", "NODE FAIL", "ECC error", "did not meet"};

Verdict killed(int signal, bool kernel_ran_out) {
  if (signal == SIGKILL && kernel_ran_out) {
    return {.outcome = Outcome::out_of_memory, .message = "the kernel killed a process for memory"};
  }
  if (signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP) {
    return {.outcome = Outcome::infrastructure, .message = fmt::format("killed from outside ({})", strsignal(signal))};
  }
  return {.outcome = Outcome::crashed, .message = fmt::format("killed by signal {} ({})", signal, strsignal(signal))};
}

// "rank 2 was killed by signal 9 (...)", as `ridgeline train --nproc` says of one of its ranks. 0: nothing of the kind.
int signal_in(const std::string& log) {
  const std::string words = "was killed by signal ";
  const size_t at = log.find(words);
  return at == std::string::npos ? 0 : static_cast<int>(std::strtol(log.c_str() + at + words.size(), nullptr, 10));
}

// The launcher only guesses at the reason of a kill; here more is known.
std::string without_guesses(std::string log) {
  const std::string guess = "(out of memory?)";
  for (size_t at = log.find(guess); at != std::string::npos; at = log.find(guess, at)) log.erase(at, guess.size());
  return log;
}

}  // namespace

Verdict verdict_of(const Ending& ending, const std::string& whole_log) {
  const std::string log = without_guesses(whole_log);
  if (!ending.fault.empty()) return {.outcome = Outcome::infrastructure, .message = ending.fault};
  if (ending.is_late) return {.outcome = Outcome::timeout, .message = "ended by the queue's time limit"};
  for (const char* words : kMemoryWords) {
    if (!contains(log, words)) continue;
    return {.outcome = Outcome::out_of_memory, .missing_bytes = missing_bytes(log), .message = line_with(log, words)};
  }
  // `train` stops by itself at a step whose gradient is no number, before any loss is.
  if (contains(log, "the gradient norm is ")) {
    return {.outcome = Outcome::diverged, .message = line_with(log, "the gradient norm is ")};
  }
  if (ending.signal != 0) return killed(ending.signal, ending.kernel_ran_out);
  if (ending.exit_code == 2) return {.outcome = Outcome::invalid, .message = last_line(log)};
  if (const int signal = signal_in(log); signal != 0) return killed(signal, ending.kernel_ran_out);
  if (ending.exit_code == 3) return {.outcome = Outcome::infrastructure, .message = "asked to stop from outside"};
  for (const char* words : kInfrastructureWords) {
    if (contains(log, words)) return {.outcome = Outcome::infrastructure, .message = line_with(log, words)};
  }
  const std::string line = last_line(log);
  return {.outcome = Outcome::crashed,
          .message = fmt::format("exit code {}{}{}", ending.exit_code, line.empty() ? "" : ": ", line)};
}

std::string tail_of(const std::string& path, size_t most) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) return "";
  const auto size = static_cast<size_t>(std::max<std::streamoff>(stream.tellg(), 0));
  const size_t length = std::min(size, most);
  std::string text(length, '\0');
  stream.seekg(static_cast<std::streamoff>(size - length));
  stream.read(text.data(), static_cast<std::streamsize>(length));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  if (length < size) {
    const size_t line = text.find('\n');
    if (line != std::string::npos) text.erase(0, line + 1);
  }
  for (char& character : text) {
    if (static_cast<unsigned char>(character) < 0x20 && character != '\n' && character != '\t') character = ' ';
  }
  return text;
}

double parse_bytes(const std::string& text) {
  static constexpr std::pair<const char*, double> kUnits[] = {
      {"KiB", 1024.0},          {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}, {"PiB", 1125899906842624.0},
      {"kB", 1e3},              {"KB", 1e3},        {"MB", 1e6},           {"GB", 1e9},              {"TB", 1e12},
      {"bytes", 1.0},           {"B", 1.0}};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(number >= 0 && number < 1e18)) return 0;
  while (*end == ' ') ++end;
  for (const auto& [unit, bytes] : kUnits) {
    if (std::strncmp(end, unit, std::strlen(unit)) == 0) return number * bytes;
  }
  return 0;
}

}  // namespace ridgeline::study
