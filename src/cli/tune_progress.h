// Progress of a study on stderr: on a terminal a table of what runs, redrawn in place, with a line above it for each
// trial that has ended; in a pipe a line for each start and end.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "study/tuner.h"

namespace ridgeline::cli {

class TuneProgress : public study::TuneListener {
 public:
  enum class Names { best, no_best };  // whether trials compete
  TuneProgress(const study::Problem& problem, bool is_live, Names names = Names::best);
  ~TuneProgress() override;  // takes the table away

  void resumed(const std::vector<study::TrialRecord>& trials) override;
  void started(const study::TrialRecord& trial, const search::Point& point) override;
  void retried(const study::TrialRecord& trial, const std::string& why) override;
  void ended(const study::TrialRecord& trial, const search::Point& point) override;
  void confirming(const study::TrialRecord& trial, int64_t round) override;
  void tick(const std::vector<const study::MeasuredRun*>& running) override;

  static bool can_redraw();  // whether stderr is a terminal that can

 private:
  void line(const std::string& text);
  bool count(const study::TrialRecord& trial);  // whether it is the best so far
  void erase();
  std::string running_line(const study::MeasuredRun& run, double now) const;

  const study::Problem& problem_;
  bool is_live_;
  Names names_;
  size_t drawn_lines_ = 0;
  std::chrono::steady_clock::time_point last_draw_;
  double best_cost_ = 0;
  int64_t ended_ = 0;
  int64_t failed_ = 0;
};

// "12.3 ms", "45.6 TFLOP/s" ...: what a cost means for people.
std::string cost_text(search::Objective goal, double cost);
std::string strategy_text(const study::Problem& problem, size_t point);

}  // namespace ridgeline::cli
