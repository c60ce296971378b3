#include "launch/lines.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace ridgeline::launch {
namespace {

// A line without end is passed on in pieces of this size.
constexpr size_t kLongestLine = size_t{1} << 16;

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready{.fd = descriptor, .events = POLLOUT, .revents = 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return;  // nobody reads any more; the ranks' own work goes on
    }
  }
}

}  // namespace

LineForwarder::LineForwarder(int from, int to, std::string prefix) : from_(from), to_(to), prefix_(std::move(prefix)) {}

LineForwarder::LineForwarder(LineForwarder&& other) noexcept
    : from_(std::exchange(other.from_, -1)),
      to_(other.to_),
      prefix_(std::move(other.prefix_)),
      pending_(std::move(other.pending_)) {}

LineForwarder::~LineForwarder() { finish(); }

void LineForwarder::pump() {
  char buffer[1 << 14];
  while (from_ >= 0) {
    const ssize_t count = read(from_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return finish();
    pending_.append(buffer, static_cast<size_t>(count));
    size_t begin = 0;
    for (size_t end; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      write_line(std::string_view(pending_).substr(begin, end - begin));
    }
    pending_.erase(0, begin);
    if (pending_.size() > kLongestLine) {
      write_line(pending_);
      pending_.clear();
    }
  }
}

void LineForwarder::finish() {
  if (from_ < 0) return;
  close(from_);
  from_ = -1;
  if (!pending_.empty()) write_line(pending_);
  pending_.clear();
}

void LineForwarder::write_line(std::string_view line) const {
  std::string text;
  if (line.find(prefix_) == std::string_view::npos) text = prefix_;
  text += line;
  text += '\n';
  write_all(to_, text);
}

}  // namespace ridgeline::launch
