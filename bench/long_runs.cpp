// 10,000 random courses of a training of 60 days: how long they take to play, and how far their mean is from Daly's
// formula.
//
//   bench_long_runs        prints a line for each mean time between failures; they must take under 2 s and agree to 1 %
#include <chrono>
#include <cstdio>

#include "project/failures.h"

int main() {
  using namespace ridgeline::project;
  constexpr int64_t kPlays = 10000;
  bool good = true;
  std::printf("%12s %12s %10s %12s %14s %10s\n", "mtbf, h", "interval, s", "seconds", "days played", "Daly's formula",
              "apart");
  for (const double hours : {1.0, 3.0, 12.0, 100.0}) {
    LongRun run;
    run.save = 60;
    run.restart = 900;
    run.mtbf = hours * 3600;
    run.interval = best_interval(run.save, run.mtbf);
    run.work = run.interval * static_cast<double>(static_cast<int64_t>(60 * 86400 / run.interval));
    const auto start = std::chrono::steady_clock::now();
    const double played = play_many(run, {}, 1, kPlays).whole.middle;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double expected = expected_seconds(run), apart = played / expected - 1;
    std::printf("%12.0f %12.0f %10.3f %12.3f %14.3f %9.3f%%\n", hours, run.interval, seconds, played / 86400,
                expected / 86400, 100 * apart);
    good = good && seconds < 2 && apart < 0.01 && apart > -0.01;
  }
  return good ? 0 : 1;
}
