// A long run with failures, checkpoints, restarts and jobs of limited length: in closed form, and played at random.
//
// Work goes on in intervals, each followed by a save. A failure, which comes at random with a mean time between two of
// `mtbf` (exponential: no memory), loses the work since the last save, takes `restart` and then `start`, and may come
// during these too. Without a limit on jobs the expected time is Daly's (FGCS 22, 2006, equation 20):
//
//   T = M exp(R / M) (exp((t + d) / M) - 1) W / t       M mtbf, R restart + start, t interval, d save, W work
//
// and the best interval solves (1 - t / M) exp((t + d) / M) = 1, near sqrt(2 d M) - d (Young 1974, Daly 2006). With a
// limit, each job waits in the queue, starts, works, and saves before its end.
//
// A play is a function of its number and the seed alone (core/random.h), so threads cannot change the outcome.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "project/range.h"

namespace ridgeline::project {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

struct LongRun {  // seconds
  double work = 0;
  double interval = kNever;       // of work between two saves
  double save = 0;                // for which training stands still
  double start = 0;               // from the start of processes to work, a checkpoint read
  double restart = 0;             // from a failure to the start of processes
  double mtbf = kNever;           // of all nodes together
  double job = kNever;            // the longest job
  double wait = 0;                // in the queue before each job, mean of an exponential distribution
  bool failure_ends_job = false;  // what follows is a new job, with its wait; else processes start again within it
};

struct Spent {  // seconds, which add up to the whole
  double work = 0;
  double lost = 0;  // work that failures undid
  double saves = 0;
  double starts = 0;
  double restarts = 0;
  double idle = 0;  // ends of jobs too short to do anything
  double waits = 0;
  double failures = 0;  // counts, as means may be fractions
  double jobs = 0;

  double in_jobs() const { return work + lost + saves + starts + restarts + idle; }
  double whole() const { return in_jobs() + waits; }
  Spent& operator+=(const Spent& other);
  Spent operator*(double factor) const;
};

// Expected seconds by Daly's formula; jobs and waits are left out.
double expected_seconds(const LongRun& run);

// The interval with the least expected time; kNever without failures.
double best_interval(double save, double mtbf);

// One play. Throws InputError where a job is too short for a start, some work and a save.
Spent play(const LongRun& run, uint64_t seed, uint64_t number);

// How the run's figures may lie beside what is thought: its steps longer, its failures more frequent.
struct Doubt {
  Range work = Range::exactly(1);  // factors
  Range mtbf = Range::exactly(1);
};

struct Plays {
  Spent mean;
  Range in_jobs;  // 5 %, mean, 95 %
  Range whole;
  std::vector<double> wholes;  // sorted
};

// `count` plays on as many threads as there are cores.
Plays play_many(const LongRun& run, const Doubt& doubt, uint64_t seed, int64_t count);

}  // namespace ridgeline::project
