#include "study/store.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "core/error.h"
#include "study/scratch.h"

namespace ridgeline::study {
namespace {

constexpr const char* kIdentity = "model = gpt-tiny\nseed = 1\n";

TEST(StudyStore, RemembersTrialsAndRuns) {
  const Scratch scratch;
  const std::string path = scratch.path("study.sqlite");
  std::string id;
  {
    StudyStore store(path, kIdentity);
    id = store.id();
    const Started first = store.begin_trial("tensor=1", {0.5}, 1e9, 2);
    const Started second = store.begin_trial("tensor=2", {}, 0, 2);
    EXPECT_EQ(first.trial, 1);
    EXPECT_EQ(second.trial, 2);
    store.set_handle(first.run, "local 12 34");
    store.end_trial({.id = second.run, .ended_at = now_seconds(), .outcome = search::Outcome::out_of_memory},
                    {.number = 2, .outcome = search::Outcome::out_of_memory, .missing_bytes = 5e6});
    store.end_trial({.id = first.run,
                     .ended_at = now_seconds(),
                     .outcome = search::Outcome::ok,
                     .step_seconds = {0.1, 1.0 / 3.0},
                     .dropped = 1},
                    {.number = 1, .outcome = search::Outcome::ok, .costs = {1.0 / 3.0}, .peak_bytes = 8e8});
  }
  StudyStore store(path, kIdentity);
  EXPECT_EQ(store.id(), id);
  const auto trials = store.trials();
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].place, 2);
  EXPECT_EQ(trials[0].costs, std::vector<double>({1.0 / 3.0}));  // to the last bit: suggestions hang on it
  EXPECT_EQ(trials[0].predicted_costs, std::vector<double>({0.5}));
  EXPECT_EQ(trials[1].place, 1);
  EXPECT_EQ(trials[1].outcome, search::Outcome::out_of_memory);
  const auto runs = store.runs();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].handle, "local 12 34");
  EXPECT_EQ(runs[0].step_seconds, std::vector<double>({0.1, 1.0 / 3.0}));
  EXPECT_EQ(runs[0].dropped, 1);
}

TEST(StudyStore, KeepsWhatItBeganWith) {
  const Scratch scratch;
  const std::string path = scratch.path("study.sqlite");
  int asked = 0;
  const auto beginning = [&] {
    ++asked;
    return Beginning{.limit_bytes = 64e9,
                     .known = {{.point = "tensor=2", .costs = {0.25}, .inherited = "first.sqlite"}},
                     .earlier = {{"tensor=4", 0.1, std::nullopt}, {"tensor=8", std::nullopt, 0.3}}};
  };
  StudyStore(path, kIdentity, beginning);
  StudyStore store(path, kIdentity, beginning);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(store.limit_bytes(), 64e9);
  const auto trials = store.trials();
  ASSERT_EQ(trials.size(), 1u);
  EXPECT_EQ(trials[0].inherited, "first.sqlite");
  EXPECT_EQ(trials[0].place, 1);
  const auto earlier = store.earlier();
  ASSERT_EQ(earlier.size(), 2u);
  EXPECT_EQ(earlier[0].log_cost, 0.1);
  EXPECT_FALSE(earlier[0].log_peak);
  EXPECT_EQ(earlier[1].log_peak, 0.3);
}

TEST(StudyStore, WhatIsNoStudyIsRefused) {
  const Scratch scratch;
  const std::string path = scratch.path("study.sqlite");
  std::ofstream(path) << "this is no database, however long it may be, and it stays as it is\n";
  EXPECT_THROW(StudyStore(path, kIdentity), Failure);
  EXPECT_THROW(StudyStore{path}, Failure);
  EXPECT_THROW(StudyStore{scratch.path("nothing.sqlite")}, Failure);
}

// A writer that is killed at any moment leaves whole transactions.
TEST(StudyStore, SurvivesKilledWriters) {
  const Scratch scratch;
  const std::string path = scratch.path("study.sqlite");
  StudyStore(path, kIdentity);
  for (int round = 0; round < 20; ++round) {
    const pid_t writer = fork();
    if (writer == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      StudyStore store(path, kIdentity);
      while (true) {
        const Started started = store.begin_trial("point", {1.0}, 0, 1);
        store.end_trial({.id = started.run, .ended_at = now_seconds(), .outcome = search::Outcome::ok},
                        {.number = started.trial, .costs = {1.0}});
      }
    }
    usleep(static_cast<useconds_t>(5000 + 1700 * round));
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    StudyStore store(path);
    const auto trials = store.trials();
    const auto runs = store.runs();
    ASSERT_EQ(trials.size(), runs.size());
    for (size_t i = 0; i < trials.size(); ++i) {
      ASSERT_EQ(trials[i].number, static_cast<int64_t>(i) + 1);
      ASSERT_EQ(trials[i].has_ended(), !runs[i].is_open());
    }
  }
}

}  // namespace
}  // namespace ridgeline::study
