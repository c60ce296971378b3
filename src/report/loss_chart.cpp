#include "report/loss_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "core/error.h"

namespace ridgeline::report {
namespace {

// Dots of one braille character: 2 across, 4 down.
constexpr int kAcross = 2;
constexpr int kDown = 4;
constexpr int kLabelWidth = 11;  // "1.235e+05 " and the axis

struct Scale {
  double low;
  double high;
  // Place of `value` among `count` places, from 0 at `low`.
  int place(double value, int count) const {
    if (!(high > low)) return count / 2;
    return std::clamp(static_cast<int>((value - low) / (high - low) * (count - 1) + 0.5), 0, count - 1);
  }
};

class Canvas {
 public:
  Canvas(int columns, int rows, bool ascii)
      : columns_(columns),
        rows_(rows),
        ascii_(ascii),
        dots_(static_cast<size_t>(columns * rows)),
        marks_(dots_.size()) {}

  int dot_columns() const { return columns_ * (ascii_ ? 1 : kAcross); }
  int dot_rows() const { return rows_ * (ascii_ ? 1 : kDown); }

  // From the lower left.
  void dot(int x, int y) {
    const int down = dot_rows() - 1 - y;
    if (ascii_) {
      dots_[cell(x, down)] = 1;
      return;
    }
    // Unicode numbers the dots of a character 1-3 and 7 down its left side, 4-6 and 8 down its right.
    constexpr unsigned char kBits[kDown][kAcross] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    dots_[cell(x / kAcross, down / kDown)] |= kBits[down % kDown][x % kAcross];
  }
  void mark(int x, int y) {
    const int down = dot_rows() - 1 - y;
    marks_[ascii_ ? cell(x, down) : cell(x / kAcross, down / kDown)] = true;
  }

  std::string row(int index) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      const auto at = cell(column, index);
      if (marks_[at]) {
        text += 'o';
      } else if (dots_[at] == 0) {
        text += ' ';
      } else if (ascii_) {
        text += '*';
      } else {
        // U+2800 + dots, as UTF-8.
        text += '\xe2';
        text += static_cast<char>(0xa0 | dots_[at] >> 6);
        text += static_cast<char>(0x80 | (dots_[at] & 0x3f));
      }
    }
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }

 private:
  size_t cell(int column, int row) const { return static_cast<size_t>(row * columns_ + column); }

  int columns_;
  int rows_;
  bool ascii_;
  std::vector<unsigned char> dots_;
  std::vector<bool> marks_;
};

struct Point {
  double step;
  double loss;
};

struct Curves {
  std::vector<Point> training;
  std::vector<Point> validation;
  int64_t left_out = 0;
};

Curves collect(std::span<const StepMetrics> metrics) {
  Curves curves;
  for (const auto& step : metrics) {
    if (std::isfinite(step.loss)) {
      curves.training.push_back({static_cast<double>(step.step), step.loss});
    } else {
      ++curves.left_out;
    }
    if (step.validation_loss && std::isfinite(*step.validation_loss)) {
      curves.validation.push_back({static_cast<double>(step.step), *step.validation_loss});
    }
  }
  return curves;
}

// Mean loss of the steps on each column of dots.
std::vector<std::optional<double>> column_means(const std::vector<Point>& points, const Scale& steps, int columns) {
  std::vector<double> sums(static_cast<size_t>(columns));
  std::vector<int64_t> counts(sums.size());
  for (const auto& point : points) {
    const auto column = static_cast<size_t>(steps.place(point.step, columns));
    sums[column] += point.loss;
    ++counts[column];
  }
  std::vector<std::optional<double>> means(sums.size());
  for (size_t i = 0; i < means.size(); ++i) {
    if (counts[i] > 0) means[i] = sums[i] / static_cast<double>(counts[i]);
  }
  return means;
}

template <typename Values, typename Get>
void widen(Scale& scale, const Values& values, Get get) {
  for (const auto& value : values) {
    if (const std::optional<double> number = get(value)) {
      scale.low = std::min(scale.low, *number);
      scale.high = std::max(scale.high, *number);
    }
  }
}

Scale empty_scale() { return {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}; }

// Neighbouring points are joined: a run of few steps, and a steep fall, are lines and not single dots.
void draw_curve(Canvas& canvas, const std::vector<std::optional<double>>& means, const Scale& losses) {
  int before_x = -1;
  int before_y = 0;
  for (int x = 0; x < static_cast<int>(means.size()); ++x) {
    const auto& mean = means[static_cast<size_t>(x)];
    if (!mean) continue;
    const int y = losses.place(*mean, canvas.dot_rows());
    canvas.dot(x, y);
    int last = before_y;
    for (int between = before_x + 1; before_x >= 0 && between <= x; ++between) {
      const double share = static_cast<double>(between - before_x) / (x - before_x);
      const int next = before_y + static_cast<int>(std::lround((y - before_y) * share));
      for (int level = std::min(last, next); level <= std::max(last, next); ++level) {
        if (level != last || last == next) canvas.dot(between, level);
      }
      last = next;
    }
    before_x = x;
    before_y = y;
  }
}

std::string label(double value) { return fmt::format("{:>{}.4g} ", value, kLabelWidth - 2); }

std::string axis(const Scale& steps, int columns) {
  const auto left = fmt::format("step {:.0f}", steps.low);
  const auto right = fmt::format("{:.0f}", steps.high);
  const int gap = std::max(1, columns - static_cast<int>(left.size() + right.size()));
  return fmt::format("{:{}}{}{:{}}{}\n", "", kLabelWidth, left, "", gap, right);
}

}  // namespace

std::string loss_chart(std::span<const StepMetrics> metrics, const ChartOptions& options) {
  RIDGELINE_ASSERT(options.width >= 30 && options.height >= 2);
  const auto curves = collect(metrics);
  if (curves.training.empty() && curves.validation.empty()) return "no finite loss to draw\n";

  const int columns = options.width - kLabelWidth;
  Canvas canvas(columns, options.height, options.ascii);
  auto steps = empty_scale();
  for (const auto* curve : {&curves.training, &curves.validation}) {
    widen(steps, *curve, [](const Point& point) { return point.step; });
  }
  const auto means = column_means(curves.training, steps, canvas.dot_columns());
  auto losses = empty_scale();
  widen(losses, means, [](const auto& mean) { return mean; });
  widen(losses, curves.validation, [](const Point& point) { return point.loss; });

  draw_curve(canvas, means, losses);
  for (const auto& point : curves.validation) {
    canvas.mark(steps.place(point.step, canvas.dot_columns()), losses.place(point.loss, canvas.dot_rows()));
  }

  std::string text;
  for (int row = 0; row < options.height; ++row) {
    const bool labelled = row == 0 || row == options.height - 1 || row == options.height / 2;
    const double at = losses.high - (losses.high - losses.low) * row / (options.height - 1);
    text += labelled ? label(at) : std::string(kLabelWidth - 1, ' ');
    text += (options.ascii ? "|" : "\u2502") + canvas.row(row) + "\n";
  }
  text += axis(steps, columns);
  if (!curves.validation.empty()) text += fmt::format("{:{}}o held-out loss\n", "", kLabelWidth);
  if (curves.left_out > 0) text += fmt::format("{:{}}not finite: {}\n", "", kLabelWidth, curves.left_out);
  return text;
}

}  // namespace ridgeline::report
