#include "report/progress.h"

#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"

namespace ridgeline::report {
namespace {

constexpr int kDefaultWidth = 80;
constexpr int kWidest = 120;
constexpr int kUnlimited = 10'000;
constexpr double kNewestShare = 0.1;  // of the running mean of step times
constexpr auto kRedraw = std::chrono::milliseconds(100);

struct Field {
  std::string text;
  int rank;  // the highest is left out first
};

std::vector<Field> fields(const ProgressState& state, std::optional<double> validation_loss) {
  const auto& metrics = state.metrics;
  std::vector<Field> all;
  all.push_back({fmt::format("step {}/{}", metrics.step, state.total_steps), 0});
  all.push_back({fmt::format("loss {:.4f}", metrics.loss), 1});
  if (validation_loss) all.push_back({fmt::format("val {:.4f}", *validation_loss), 5});
  all.push_back({format_count(metrics.tokens_per_second) + " tok/s", 3});
  all.push_back({fmt::format("{:.3g} TFLOP/s", metrics.tflops_per_device), 6});
  if (metrics.mfu) all.push_back({fmt::format("MFU {:.1f}%", *metrics.mfu * 100), 4});
  if (metrics.peak_memory > 0) all.push_back({format_bytes(static_cast<double>(metrics.peak_memory)), 7});
  if (state.seconds_left) all.push_back({"ETA " + format_duration(*state.seconds_left), 2});
  return all;
}

bool can_redraw() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

int terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return kDefaultWidth;
  return std::min<int>(size.ws_col, kWidest);
}

}  // namespace

std::string progress_text(const ProgressState& state, std::optional<double> validation_loss, int width) {
  auto all = fields(state, validation_loss);
  const auto joined = [&all] {
    std::string text;
    for (const auto& field : all) text += (text.empty() ? "" : "  ") + field.text;
    return text;
  };
  auto text = joined();
  while (static_cast<int>(text.size()) > width && all.size() > 1) {
    all.erase(std::max_element(all.begin(), all.end(), [](const Field& a, const Field& b) { return a.rank < b.rank; }));
    text = joined();
  }
  return text.substr(0, static_cast<size_t>(std::max(width, 0)));
}

// Stands in the log's place and hands each line on to where it went before, above the live line.
class Progress::LogSink : public spdlog::sinks::sink {
 public:
  explicit LogSink(Progress& progress) : progress_(progress), logger_(spdlog::default_logger()) {
    inner_ = std::exchange(logger_->sinks(), {});
  }
  void attach() { logger_->sinks().push_back(progress_.log_sink_); }
  void detach() { logger_->sinks() = inner_; }

  void log(const spdlog::details::log_msg& message) override {
    progress_.print_above([&] {
      for (const auto& sink : inner_) {
        if (sink->should_log(message.level)) sink->log(message);
      }
      flush();
    });
  }
  void flush() override {
    for (const auto& sink : inner_) sink->flush();
  }
  void set_pattern(const std::string& pattern) override {
    for (const auto& sink : inner_) sink->set_pattern(pattern);
  }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    for (const auto& sink : inner_) sink->set_formatter(formatter->clone());
  }

 private:
  Progress& progress_;
  std::shared_ptr<spdlog::logger> logger_;
  std::vector<spdlog::sink_ptr> inner_;
};

Progress::Progress()
    : Progress(stderr, can_redraw() ? Style::live : Style::plain, terminal_width() - 1,
               [] { return std::chrono::steady_clock::now(); }) {
  if (style_ == Style::plain) return;
  log_sink_ = std::make_shared<LogSink>(*this);
  log_sink_->attach();
}

Progress::Progress(std::FILE* out, Style style, int width, Clock clock)
    : out_(out), style_(style), width_(width), clock_(std::move(clock)) {}

Progress::~Progress() {
  finish();
  if (log_sink_) log_sink_->detach();
}

void Progress::update(const ProgressState& newest) {
  const std::lock_guard lock(mutex_);
  auto state = newest;
  const auto seconds = state.metrics.step_seconds;
  step_seconds_ = step_seconds_ ? *step_seconds_ + kNewestShare * (seconds - *step_seconds_) : seconds;
  if (!state.seconds_left && state.metrics.step < state.total_steps) {
    state.seconds_left = *step_seconds_ * static_cast<double>(state.total_steps - state.metrics.step);
  }
  if (state.metrics.validation_loss) validation_loss_ = state.metrics.validation_loss;
  if (style_ == Style::plain) {
    const auto line = progress_text(state, state.metrics.validation_loss, kUnlimited);
    std::fprintf(out_, "%s\n", line.c_str());
    std::fflush(out_);
    return;
  }
  text_ = progress_text(state, validation_loss_, width_);
  const auto now = clock_();
  if (last_draw_ && now - *last_draw_ < kRedraw) return;
  last_draw_ = now;
  draw();
}

void Progress::draw() {
  std::fprintf(out_, "\r%s\x1b[K", text_.c_str());  // writes over the old text, then clears the rest of the line
  std::fflush(out_);
  drawn_ = true;
}

void Progress::erase() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
  drawn_ = false;
}

void Progress::print_above(const std::function<void()>& print) {
  const std::lock_guard lock(mutex_);
  const bool redraw = drawn_;
  erase();
  print();
  if (redraw) draw();
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  if (text_.empty()) return;
  draw();
  std::fputc('\n', out_);
  std::fflush(out_);
  drawn_ = false;
  text_.clear();
}

}  // namespace ridgeline::report
