#include "mesh/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "mesh/failure.h"
#include "mesh/processes.h"

namespace ridgeline::mesh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What every kind of store owes.
void check_values(Store& store, Store& other) {
  EXPECT_FALSE(store.has("key"));
  store.set("key", "value");
  EXPECT_TRUE(other.has("key"));
  EXPECT_EQ(other.get("key"), "value");
  EXPECT_EQ(store.add("sum", 2), 2);
  EXPECT_EQ(other.add("sum", 3), 5);
  EXPECT_EQ(store.add("sum", 0), 5);
  std::thread later([&] { store.set("late", "1"); });
  EXPECT_EQ(other.get("late"), "1");
  later.join();
}

TEST(Store, InMemory) {
  const auto store = Store::in_process();
  check_values(*store, *store->reopen(5.0));
  EXPECT_TRUE(store->held_here());
}

TEST(Store, OverTcp) {
  const auto store = Store::tcp("127.0.0.1", 0, true, 5.0);
  EXPECT_GT(store->port(), 0);
  const auto client = Store::tcp("127.0.0.1", store->port(), false, 5.0);
  check_values(*store, *client);
  EXPECT_TRUE(store->held_here());
  EXPECT_FALSE(client->held_here());
  EXPECT_FALSE(store->reopen(5.0)->held_here()) << "the first connection holds the values";
}

TEST(Store, InAFile) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("ridgeline-store-" + std::to_string(getpid()));
  const auto store = Store::file(path, 5.0);
  check_values(*store, *store->reopen(5.0));
  EXPECT_FALSE(store->held_here());
  EXPECT_TRUE(store->grows());
  std::filesystem::remove(path);
}

TEST(Store, GivesUpOnAValueThatDoesNotCome) {
  const auto store = Store::in_process(0.2);
  EXPECT_THROW(store->get("never"), CommunicationFailure);
}

TEST(Store, NamesTheRanksThatDidNotCome) {
  launch::RankEnvironment environment;
  environment.rank = 0;
  environment.world = 3;
  environment.master_address = "127.0.0.1";
  environment.master_port = free_port();
  try {
    Store::open(environment, 0.5);
    FAIL() << "expected a CommunicationFailure";
  } catch (const CommunicationFailure& failure) {
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("2 of 3 ranks did not come to rank 0's store"), HasSubstr(": 1, 2.")));
  }
}

TEST(Store, SaysWhereItLookedForRankZero) {
  launch::RankEnvironment environment;
  environment.rank = 1;
  environment.world = 2;
  environment.master_address = "127.0.0.1";
  environment.master_port = free_port();
  try {
    Store::open(environment, 1.0);
    FAIL() << "expected a CommunicationFailure";
  } catch (const CommunicationFailure& failure) {
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("127.0.0.1:" + std::to_string(environment.master_port)),
                                      HasSubstr("MASTER_ADDR"), testing::Not(HasSubstr("Exception raised from"))));
  }
}

TEST(Store, OfOneRankMeetsNobody) {
  const auto store = Store::open(launch::RankEnvironment{}, 1.0);
  EXPECT_TRUE(store->held_here());
}

}  // namespace
}  // namespace ridgeline::mesh
