#include "mesh/failure_note.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace ridgeline::mesh {

std::string FailureNote::to_text() const {
  const nlohmann::json json = {
      {"rank", rank}, {"exit_code", exit_code}, {"message", message}, {"host", host}, {"by_itself", by_itself}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<FailureNote> FailureNote::from_text(const std::string& text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    FailureNote note;
    note.rank = json.at("rank").get<int64_t>();
    note.exit_code = json.at("exit_code").get<int>();
    note.message = json.at("message").get<std::string>();
    note.host = json.value("host", std::string());
    note.by_itself = json.at("by_itself").get<bool>();
    // A code of 0 or past a byte would let a failed job look like a good one.
    if (note.exit_code < 1 || note.exit_code > 125) note.exit_code = 1;
    return note;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string FailureNote::line() const {
  const std::string where = host.empty() ? "" : fmt::format(" [host {}]", host);
  return fmt::format("ridgeline: rank {} failed: {}{}\n", rank, message, where);
}

void print_line(const std::string& line) {
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = ::write(STDERR_FILENO, line.data() + written, line.size() - written);
    if (count <= 0) return;
    written += static_cast<std::size_t>(count);
  }
}

}  // namespace ridgeline::mesh
