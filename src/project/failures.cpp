#include "project/failures.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <numbers>
#include <thread>

#include "core/error.h"
#include "core/random.h"
#include "core/text.h"

namespace ridgeline::project {
namespace {

// Numbers of one play in their order: word k of block n of the counter (n, play).
class Draws {
 public:
  Draws(uint64_t key, uint64_t play) : key_(key), play_(play) {}

  double uniform() {
    if (at_ == 4) refill();
    return (static_cast<double>(block_[at_++]) + 0.5) * 0x1p-32;
  }
  double exponential(double mean) { return -mean * std::log(uniform()); }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  void refill() {
    block_ = philox4x32({static_cast<uint32_t>(number_), static_cast<uint32_t>(number_ >> 32),
                         static_cast<uint32_t>(play_), static_cast<uint32_t>(play_ >> 32)},
                        key_);
    ++number_;
    at_ = 0;
  }

  uint64_t key_, play_, number_ = 0;
  PhiloxBlock block_ = {};
  int at_ = 4;
};

// A job that gets nothing done would be followed by others for ever.
constexpr double kLeastShareOfJob = 0.05;

// More than a few means between failures for one interval, and runs end by luck alone.
constexpr double kMostMeans = 12;

void check(const LongRun& run) {
  const double attempt = run.restart + run.start + std::min(run.interval, run.work) + run.save;
  if (attempt > kMostMeans * run.mtbf) {
    throw InputError(
        "a failure every {} on average: a restart, one interval between checkpoints and a save take {}, so "
        "that training would hardly get on; save more often, or use fewer nodes",
        format_duration(run.mtbf), format_duration(attempt));
  }
  if (run.job == kNever) return;
  const double overhead = run.start + run.save;
  if (run.job - overhead >= kLeastShareOfJob * run.job) return;
  throw InputError(
      "jobs of {}: a start takes {} and a save {}, which leaves less than {:.0f} % of a job for work; use "
      "longer jobs, or fewer nodes",
      format_duration(run.job), format_duration(run.start), format_duration(run.save), 100 * kLeastShareOfJob);
}

// One way from a start to a failure, the job's end or the run's.
class Player {
 public:
  Player(const LongRun& run, Draws& draws) : run_(run), draws_(draws), left_(run.work) {}

  Spent play() {
    begin_job();
    while (left_ > 0) attempt();
    return spent_;
  }

 private:
  void begin_job() {
    if (run_.wait > 0) spent_.waits += draws_.exponential(run_.wait);
    ++spent_.jobs;
    room_ = run_.job;
    after_failure_ = false;
  }

  void attempt() {
    const double overhead = run_.start + (after_failure_ ? run_.restart : 0);
    const double horizon = room_ - run_.save;  // what is done by then is saved before the job ends
    if (overhead >= horizon) {
      spent_.idle += room_;
      return begin_job();
    }
    const double fails = run_.mtbf == kNever ? kNever : draws_.exponential(run_.mtbf);
    const double saves_left = run_.interval == kNever ? 1 : std::max(1.0, std::ceil(left_ / run_.interval - 1e-9));
    const double finish = overhead + left_ + saves_left * run_.save;
    const bool finishes = finish <= room_;
    if (fails < (finishes ? finish : room_)) return fail(overhead, fails);
    take_overhead(overhead);
    if (finishes) {
      spent_.work += left_;
      spent_.saves += saves_left * run_.save;
      left_ = 0;
      return;
    }
    end_job(horizon - overhead);
  }

  void end_job(double usable) {
    const double cycle = run_.interval + run_.save;
    const double cycles = std::floor(usable / cycle);
    const double rest = usable - (cycles > 0 ? cycles * cycle : 0);  // a cycle may be endless
    const double last = std::min(rest, run_.interval);
    const double whole = cycles > 0 ? cycles * run_.interval : 0;
    spent_.work += whole + last;
    spent_.idle += rest - last;
    spent_.saves += (cycles + 1) * run_.save;
    left_ = std::max(0.0, left_ - whole - last);
    if (left_ > 0) begin_job();
  }

  void fail(double overhead, double at) {
    ++spent_.failures;
    take_overhead(std::min(at, overhead));
    if (at > overhead) {
      const double cycle = run_.interval + run_.save;
      const double cycles = std::floor((at - overhead) / cycle);
      const double whole = cycles > 0 ? cycles * run_.interval : 0;
      spent_.work += whole;
      left_ -= whole;
      spent_.saves += cycles * run_.save;
      spent_.lost += at - overhead - (cycles > 0 ? cycles * cycle : 0);
    }
    room_ -= at;
    if (run_.failure_ends_job) return begin_job();
    after_failure_ = true;
  }

  void take_overhead(double seconds) {
    const double restart = after_failure_ ? std::min(seconds, run_.restart) : 0;
    spent_.restarts += restart;
    spent_.starts += seconds - restart;
  }

  const LongRun& run_;
  Draws& draws_;
  Spent spent_;
  double left_;
  double room_ = 0;
  bool after_failure_ = false;
};

// A factor whose 5 %, 50 % and 95 % points are the range's: normal in logarithms, each side with its own width.
double drawn_factor(const Range& range, double normal) {
  if (range.low == range.high) return range.middle;
  const double end = normal < 0 ? range.low : range.high;
  return range.middle * std::exp(std::abs(normal) / kNormal90 * std::log(end / range.middle));
}

Spent play_in_doubt(LongRun run, const Doubt& doubt, uint64_t key, uint64_t number) {
  Draws draws(key, number);
  const double for_work = draws.normal(), for_mtbf = draws.normal();
  run.work *= drawn_factor(doubt.work, for_work);
  run.mtbf *= drawn_factor(doubt.mtbf, for_mtbf);
  return Player(run, draws).play();
}

Range range_of(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  const auto at = [&](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {at(0.05), sum / static_cast<double>(values.size()), at(0.95)};
}

}  // namespace

Spent& Spent::operator+=(const Spent& other) {
  work += other.work;
  lost += other.lost;
  saves += other.saves;
  starts += other.starts;
  restarts += other.restarts;
  idle += other.idle;
  waits += other.waits;
  failures += other.failures;
  jobs += other.jobs;
  return *this;
}

Spent Spent::operator*(double factor) const {
  return {work * factor, lost * factor,  saves * factor,    starts * factor, restarts * factor,
          idle * factor, waits * factor, failures * factor, jobs * factor};
}

double expected_seconds(const LongRun& run) {
  const double intervals = run.interval == kNever ? 1 : run.work / run.interval;
  const double interval = run.interval == kNever ? run.work : run.interval;
  if (run.mtbf == kNever) return run.work + intervals * run.save;
  const double cycle = interval + run.save;
  return run.mtbf * std::exp((run.restart + run.start) / run.mtbf) * std::expm1(cycle / run.mtbf) * intervals;
}

double best_interval(double save, double mtbf) {
  if (mtbf == kNever) return kNever;
  const double d = save / mtbf;
  // Newton's method from Young's value, which lies above the root; the function is concave and falls.
  double x = std::min(std::sqrt(2 * d), 0.999);
  for (int i = 0; i < 50; ++i) {
    const double grown = std::exp(x + d);
    const double next = x + ((1 - x) * grown - 1) / (x * grown);
    if (!(std::abs(next - x) > 1e-12)) break;
    x = std::clamp(next, 1e-12, 1.0);
  }
  return x * mtbf;
}

Spent play(const LongRun& run, uint64_t seed, uint64_t number) {
  check(run);
  Draws draws(random_key(seed, "project.failures"), number);
  return Player(run, draws).play();
}

Plays play_many(const LongRun& run, const Doubt& doubt, uint64_t seed, int64_t count) {
  check(run);
  RIDGELINE_ASSERT(count > 0);
  const uint64_t key = random_key(seed, "project.failures");
  std::vector<Spent> spent(static_cast<size_t>(count));
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 64);
  std::vector<std::exception_ptr> faults(static_cast<size_t>(threads));
  std::atomic<size_t> next = 0;
  constexpr size_t kPortion = 64;
  const auto work = [&](size_t thread) {
    try {
      for (size_t first = next.fetch_add(kPortion); first < spent.size(); first = next.fetch_add(kPortion)) {
        const size_t end = std::min(first + kPortion, spent.size());
        for (size_t i = first; i < end; ++i) spent[i] = play_in_doubt(run, doubt, key, i);
      }
    } catch (...) {
      faults[thread] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> crew;
    for (int thread = 1; thread < threads; ++thread) crew.emplace_back(work, static_cast<size_t>(thread));
    work(0);
  }
  for (const std::exception_ptr& fault : faults) {
    if (fault) std::rethrow_exception(fault);
  }
  Plays plays;
  std::vector<double> in_jobs;
  for (const Spent& one : spent) {
    plays.mean += one;
    in_jobs.push_back(one.in_jobs());
    plays.wholes.push_back(one.whole());
  }
  plays.mean = plays.mean * (1 / static_cast<double>(count));
  plays.in_jobs = range_of(in_jobs);
  plays.whole = range_of(plays.wholes);
  return plays;
}

}  // namespace ridgeline::project
