// Passes the output of a rank on, whole lines at a time, so that the lines of ranks do not mix.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline::launch {

class LineForwarder {
 public:
  // `from` is a descriptor that does not block; owned. `to` is not. `prefix` goes before each line that lacks it.
  LineForwarder(int from, int to, std::string prefix);
  LineForwarder(LineForwarder&& other) noexcept;
  LineForwarder& operator=(LineForwarder&&) = delete;
  ~LineForwarder();

  int descriptor() const { return from_; }  // -1 after the end
  // Reads what there is and writes the whole lines of it. At the end of the input closes, and writes an unfinished
  // line.
  void pump();

 private:
  void finish();
  void write_line(std::string_view line) const;

  int from_;
  int to_;
  std::string prefix_;
  std::string pending_;
};

}  // namespace ridgeline::launch
