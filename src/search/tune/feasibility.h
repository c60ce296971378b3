// How likely points are to run: by memory, and by whatever else made trials fail.
//
// Memory is learned as log(peak / guessed peak), or log(peak / limit) without a guess, from every peak that is told and
// from how far failures fell short; a run without a figure says on which side of the limit it lies, which is held
// against its guess. Failures that no size explains are learned by their sign. What needs no more memory than a success
// fits.
#pragma once

#include <memory>
#include <vector>

#include "search/surrogate/process_model.h"
#include "search/surrogate/sign_model.h"
#include "search/tune/dominance.h"
#include "search/tune/searcher.h"

namespace ridgeline::search {

class Feasibility {
 public:
  Feasibility(const PointSet& points, const std::vector<Guess>& guesses, const SearchOptions& options,
              const std::vector<LevelAxis>& axes);

  void tell(const Trial& trial);
  // Points that a known failure rules out.
  bool is_ruled_out(size_t point) const { return ruled_out_[point]; }

  void look_at(const std::vector<size_t>& candidates, const std::shared_ptr<const LevelColumns>& columns);
  std::vector<double> probabilities();  // one a candidate

  struct Verdict {
    double probability = 1;
    double peak_bytes = 0;  // median; 0: nothing is known
  };
  std::vector<Verdict> verdicts(const std::vector<size_t>& points,
                                const std::shared_ptr<const LevelColumns>& columns) const;

 private:
  bool knows_memory() const { return limit_bytes_ > 0 && (!guesses_.empty() || memory_.size() > 0); }
  double expected_log_peak(size_t point) const;
  void tell_memory(const Trial& trial);
  double probability(size_t point, size_t place, const Posterior* memory, const std::vector<double>* others) const;

  const PointSet& points_;
  const std::vector<Guess>& guesses_;
  double given_limit_;  // what trials are told against
  double limit_bytes_;  // the same, or what a run was seen to take beyond it
  Dominance dominance_;
  ProcessModel memory_;
  SignModel others_;
  bool has_other_failures_ = false;
  std::vector<bool> ruled_out_, fits_;
  std::vector<size_t> candidates_;
};

}  // namespace ridgeline::search
