// What is peculiar to the back end of shared memory: that ranks make progress whatever they wait for or compute,
// results of any size, in place and bit for bit alike, and the ends of ranks. communicator_test.cpp runs on it as well.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "core/error.h"
#include "mesh/failure.h"
#include "mesh/mesh.h"
#include "mesh/processes.h"
#include "mesh/ranks.h"
#include "mesh/shared_memory/segment.h"

namespace ridgeline::mesh {
namespace {

using std::chrono::milliseconds;
using testing::AnyOf;
using testing::HasSubstr;

constexpr auto kBackEnds = {BackEndKind::shared_memory, BackEndKind::gloo};

Mesh make_mesh(const MeshShape& shape, int64_t rank, std::shared_ptr<Store> store,
               BackEndKind kind = BackEndKind::shared_memory) {
  MeshOptions options = rank_options();
  options.back_end = kind;
  return Mesh(shape, rank, std::move(store), platform::Device::select("cpu"), options);
}

at::Tensor values(int64_t seed, int64_t elements, at::ScalarType type = at::kFloat) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed) + 1);
  return at::randn({elements}, generator, at::kFloat).to(type);
}

TEST(SharedMemory, SumsLargeAndOddSizesAlikeOnAllRanks) {
  constexpr int64_t size = 3;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    for (const int64_t elements : {1, 5461, 5462, 70001, 400003, 1000000}) {
      std::vector<at::Tensor> results(size);
      run_ranks(size, [&](int64_t rank, std::shared_ptr<Store> store) {
        const Mesh mesh = make_mesh({.data = size}, rank, store);
        results[static_cast<std::size_t>(rank)] = values(rank, elements, type);
        mesh.world().all_reduce(results[static_cast<std::size_t>(rank)]).wait();
      });
      // In rank order, in fp32 where the type is narrower, rounded once.
      const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
      at::Tensor expected = values(0, elements, type).to(wide);
      for (int64_t rank = 1; rank < size; ++rank) expected = expected + values(rank, elements, type).to(wide);
      for (const at::Tensor& result : results) {
        ASSERT_TRUE(result.equal(expected.to(type))) << elements << " of " << c10::toString(type);
      }
    }
  }
}

TEST(SharedMemory, WorksInPlaceAsGlooDoes) {
  for (const BackEndKind kind : kBackEnds) {
    for (const int64_t part : {3, 300001}) {
      run_ranks(4, [&](int64_t rank, std::shared_ptr<Store> store) {
        const Mesh mesh = make_mesh({.data = 4}, rank, store, kind);
        at::Tensor whole = (at::arange(4 * part, at::kLong) % 7 + rank).to(at::kFloat);
        const at::Tensor own = whole.narrow(0, rank * part, part);
        mesh.world().reduce_scatter(own, whole).wait();
        const at::Tensor sum = ((at::arange(4 * part, at::kLong) % 7) * 4 + 6).to(at::kFloat);
        EXPECT_TRUE(own.equal(sum.narrow(0, rank * part, part))) << part;
        mesh.world().all_gather(whole, own).wait();
        EXPECT_TRUE(whole.equal(sum)) << part;
      });
    }
  }
}

TEST(SharedMemory, MovesLargeTensorsInEveryOperation) {
  constexpr int64_t size = 3, part = 250007;
  run_ranks(size, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = make_mesh({.data = size}, rank, store);
    const at::Tensor in = values(rank, size * part), out = at::empty({size * part});
    mesh.world().all_to_all(out, in).wait();
    for (int64_t peer = 0; peer < size; ++peer) {
      EXPECT_TRUE(out.narrow(0, peer * part, part).equal(values(peer, size * part).narrow(0, rank * part, part)));
    }
    const at::Tensor copy = values(rank, part);
    for (int64_t repeat = 0; repeat < 5; ++repeat) mesh.world().broadcast(copy, 1).wait();
    EXPECT_TRUE(copy.equal(values(1, part)));
    const at::Tensor received = at::empty({size * part});
    Work send = mesh.world().send(in, (rank + 1) % size);
    mesh.world().receive(received, (rank + 2) % size).wait();
    send.wait();
    EXPECT_TRUE(received.equal(values((rank + 2) % size, size * part)));
  });
}

// Half of the ranks wait for an operation that their peers have only started: those wait in another group, for what the
// first do later.
TEST(SharedMemory, MakesProgressInAGroupThatNobodyWaitsIn) {
  run_ranks(4, [](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = make_mesh({.data = 2, .tensor = 2}, rank, store);
    at::Tensor first = at::ones({100000}), second = at::ones({10});
    if (mesh.coordinate(Axis::data) == 0) {
      mesh.group(Axis::data).all_reduce(first).wait();
      mesh.world().all_reduce(second).wait();
    } else {
      Work pending = mesh.group(Axis::data).all_reduce(first);
      mesh.world().all_reduce(second).wait();
      pending.wait();
    }
    EXPECT_EQ(first.sum().item<double>(), 200000.0);
    EXPECT_EQ(second.sum().item<double>(), 40.0);
  });
}

// The same with a rank that computes, that is, waits in nothing of ours, until its peer has the result; and with a
// message that is larger than what can lie between two ranks.
TEST(SharedMemory, MakesProgressWhileARankComputes) {
  run_ranks(2, [](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = make_mesh({.data = 2}, rank, store);
    at::Tensor tensor = at::ones({100000}), message = at::full({2000000}, static_cast<double>(rank));
    Work sum = mesh.world().all_reduce(tensor);
    Work moved = rank == 0 ? mesh.world().receive(message, 1) : mesh.world().send(message, 0);
    if (rank == 0) {
      sum.wait();
      moved.wait();
      store->set("rank 0 has both", "1");
    } else {
      while (!store->has("rank 0 has both")) std::this_thread::sleep_for(milliseconds(1));
      EXPECT_TRUE(sum.done());
      EXPECT_TRUE(moved.done());
      sum.wait();
      moved.wait();
    }
    EXPECT_EQ(tensor.sum().item<double>(), 200000.0);
    EXPECT_EQ(message[7].item<double>(), 1.0);
  });
}

TEST(SharedMemory, ReceivesInAnotherOrderThanWasSent) {
  constexpr int64_t count = 20;
  run_ranks(2, [](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = make_mesh({.data = 2}, rank, store);
    std::vector<Work> works;
    std::vector<at::Tensor> tensors;
    for (int64_t index = 0; index < count; ++index) {
      // Together far more than fits between two ranks.
      const int64_t tag = rank == 0 ? index : count - 1 - index;
      tensors.push_back(rank == 0 ? values(tag, 100003 + tag) : at::empty({100003 + tag}));
      works.push_back(rank == 0 ? mesh.world().send(tensors.back(), 1, tag)
                                : mesh.world().receive(tensors.back(), 0, tag));
    }
    std::shuffle(works.begin(), works.end(), std::mt19937_64(7));
    for (Work& work : works) work.wait();
    for (int64_t index = 0; index < count && rank == 1; ++index) {
      const int64_t tag = count - 1 - index;
      EXPECT_TRUE(tensors[static_cast<std::size_t>(index)].equal(values(tag, 100003 + tag)));
    }
  });
}

TEST(SharedMemory, RefusesAMessageOfAnotherSize) {
  run_ranks(2, [](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = make_mesh({.data = 2}, rank, store);
    if (rank == 0) return mesh.world().send(at::ones({3}), 1).wait();
    try {
      mesh.world().receive(at::ones({4}), 0).wait();
      FAIL() << "expected a CommunicationFailure";
    } catch (const CommunicationFailure& failure) {
      EXPECT_THAT(failure.what(), HasSubstr("rank 0 sent 12 bytes with tag 0 where 16 were expected"));
    }
  });
}

// Operations on all groups of a mesh in an order that all members of a group share, waited for in any order after
// pauses of any length, against what each must give.
void interleave(const Mesh& mesh, int64_t rank, int64_t operations) {
  std::mt19937_64 common(11), own(static_cast<uint64_t>(rank) + 1);
  const std::array<const Communicator*, 4> groups = {&mesh.world(), &mesh.group(Axis::tensor), &mesh.group(Axis::data),
                                                     &mesh.group(Axis::pipeline)};
  struct Pending {
    Work work;
    at::Tensor result, expected;
  };
  std::vector<Pending> pending;
  int64_t wrong = 0;
  const auto wait_for_all = [&] {
    std::shuffle(pending.begin(), pending.end(), own);
    for (Pending& one : pending) {
      one.work.wait();
      if (!one.result.equal(one.expected)) ++wrong;
    }
    pending.clear();
  };
  for (int64_t number = 0; number < operations; ++number) {
    const Communicator& group = *groups[common() % groups.size()];
    const auto kind = common() % 5;
    const auto draw = common();
    const int64_t elements = 1 + static_cast<int64_t>(draw % 16 == 0 ? draw % 300000 : draw % 300);
    const auto size = group.size();
    const auto value = [&](int64_t member) { return static_cast<double>((member * 3 + number) % 100); };
    const double mine = value(group.members()[static_cast<std::size_t>(group.rank())]);
    at::Tensor all = at::empty({size, 1});
    for (int64_t member = 0; member < size; ++member) {
      all[member] = value(group.members()[static_cast<std::size_t>(member)]);
    }
    Pending one;
    if (kind == 0) {
      one.result = at::full({elements}, mine);
      one.expected = at::full({elements}, all.sum().item<double>());
      one.work = group.all_reduce(one.result);
    } else if (kind == 1) {
      one.result = at::empty({size, elements});
      one.expected = all.expand({size, elements}).contiguous();
      one.work = group.all_gather(one.result, at::full({elements}, mine));
    } else if (kind == 2) {
      one.result = at::empty({elements});
      one.expected = at::full({elements}, all.sum().item<double>());
      one.work = group.reduce_scatter(one.result, at::full({size * elements}, mine));
    } else if (kind == 3) {
      const auto root = static_cast<int64_t>(draw % static_cast<uint64_t>(size));
      one.result = at::full({elements}, mine);
      one.expected = at::full({elements}, all[root].item<double>());
      one.work = group.broadcast(one.result, root);
    } else if (size > 1) {
      const int64_t next = (group.rank() + 1) % size, before = (group.rank() + size - 1) % size;
      const auto tag = static_cast<int64_t>(draw % 3);
      one.result = at::empty({elements});
      one.expected = at::full({elements}, all[before].item<double>());
      one.work = group.receive(one.result, before, tag);
      const at::Tensor sent = at::full({elements}, mine);
      pending.push_back({group.send(sent, next, tag), sent, sent});
    } else {
      continue;
    }
    pending.push_back(std::move(one));
    if (own() % 64 == 0) std::this_thread::sleep_for(milliseconds(own() % 5));
    if (pending.size() > own() % 24) wait_for_all();
  }
  wait_for_all();
  EXPECT_EQ(wrong, 0);
}

TEST(SharedMemory, InterleavesGroupsOnEightThreads) {
  const MeshShape shape{.pipeline = 2, .data = 2, .tensor = 2};
  run_ranks(8, [&](int64_t rank, std::shared_ptr<Store> store) {
    interleave(make_mesh(shape, rank, store), rank, 4000);
  });
}

// Ranks as processes: this test program again, with SharedMemoryRank as its main function.
struct RankProcess {
  std::string scenario = std::getenv("SCENARIO");
  int rank = std::atoi(std::getenv("SCENARIO_RANK"));
  int world = std::atoi(std::getenv("SCENARIO_WORLD"));
  std::shared_ptr<Store> store = Store::tcp("127.0.0.1", std::atoi(std::getenv("SCENARIO_PORT")), rank == 0, 60.0);
};

TEST(SharedMemoryRank, DISABLED_Main) {
  const RankProcess self;
  if (self.scenario == "interleave") {
    const MeshShape shape{.pipeline = 2, .data = 2, .tensor = 1};
    interleave(make_mesh(shape, self.rank, self.store), self.rank, 3000);
    self.store->add("finished", 1);
    // The store goes with rank 0.
    while (self.rank == 0 && self.store->add("finished", 0) < self.world) std::this_thread::sleep_for(milliseconds(5));
    return;
  }
  const Mesh mesh = make_mesh({.data = self.world}, self.rank, self.store);
  std::cerr << "ready" << std::endl;
  try {
    const at::Tensor tensor = at::ones({200000});
    while (true) {
      if (self.scenario == "reduce") mesh.world().all_reduce(tensor, Reduction::max).wait();
      if (self.scenario == "receive" && self.rank == 1) std::this_thread::sleep_for(std::chrono::hours(1));
      if (self.scenario == "receive") mesh.world().receive(tensor, 1).wait();
    }
  } catch (const CommunicationFailure& failure) {
    std::cerr << failure.what() << std::endl;
    _exit(41);
  }
}

TEST(SharedMemory, InterleavesGroupsOnFourProcesses) {
  RankProcesses ranks(4, "SharedMemoryRank.DISABLED_Main", "interleave");
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(ranks.exit_code(rank), 0) << ranks.output(rank);
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(SharedMemory, NoticesAKilledRankAndLeavesNothingBehind) {
  const std::vector<std::string> before = names_in("/dev/shm");
  RankProcesses ranks(3, "SharedMemoryRank.DISABLED_Main", "reduce");
  ranks.wait_for("ready");
  ranks.signal(1, SIGKILL);
  EXPECT_EQ(ranks.exit_code(1), -SIGKILL);
  for (const int rank : {0, 2}) {
    EXPECT_EQ(ranks.exit_code(rank), 41) << ranks.output(rank);
    // The one that saw it left, which ends the other.
    EXPECT_THAT(ranks.output(rank), AnyOf(HasSubstr("rank 1 (process"), HasSubstr("has left the group")));
  }
  EXPECT_THAT(ranks.all_output(), HasSubstr(") has ended"));
  EXPECT_EQ(names_in("/dev/shm"), before);
}

TEST(SharedMemory, NoticesAKilledSender) {
  RankProcesses ranks(2, "SharedMemoryRank.DISABLED_Main", "receive");
  ranks.wait_for("ready");
  ranks.signal(1, SIGKILL);
  EXPECT_EQ(ranks.exit_code(0), 41) << ranks.output(0);
  EXPECT_THAT(ranks.output(0), HasSubstr("rank 1 (process"));
}

TEST(SharedMemory, SaysWhoDidNotCome) {
  run_ranks(4, [](int64_t rank, std::shared_ptr<Store> store) {
    MeshOptions options = rank_options();
    options.back_end = BackEndKind::shared_memory;
    options.timeout = 0.5;
    const Mesh mesh({.data = 4}, rank, store, platform::Device::select("cpu"), options);
    if (rank == 1 || rank == 2) {
      store->get("0 has given up");
      store->get("3 has given up");
      return;
    }
    std::string text;
    try {
      mesh.world().barrier().wait();
    } catch (const CommunicationFailure& failure) {
      text = failure.what();
    }
    // Whoever is first to give up has left for the other.
    EXPECT_THAT(text, AnyOf(HasSubstr("ranks 1, 2 did not come within 0.5 s"), HasSubstr("has left the group")));
    EXPECT_THROW(mesh.world().barrier().wait(), CommunicationFailure) << "the group is lost";
    store->set(fmt::format("{} has given up", rank), "1");
  });
}

TEST(SharedMemory, RefusesToAttachToWhatIsNotTheGroups) {
  using shared_memory::Segment;
  using shared_memory::SegmentShape;
  const SegmentShape shape = SegmentShape::of_group(2);
  const Segment segment = Segment::create(shape);
  EXPECT_NO_THROW(Segment::attach(segment.address(), shape));
  EXPECT_THROW(Segment::attach("nonsense", shape), Failure);
  EXPECT_THROW(Segment::attach(segment.address() + "1", shape), Failure) << "another job's";
  EXPECT_THROW(Segment::attach(segment.address(), SegmentShape::of_group(3)), Failure);
  EXPECT_THROW(Segment::attach(fmt::format("{} 0 1", getpid()), shape), Failure) << "no shared memory at all";
}

// A first member whose address leads nowhere: what its peers see where process numbers differ between containers.
TEST(SharedMemory, AllMembersAgreeThatOneCannotShare) {
  const std::shared_ptr<Store> store = Store::in_process();
  std::string fault;
  GroupSetup setup{"pair", {0, 1}, 1, store, platform::Device::select("cpu"), 10.0, true};
  store->set("group/pair/shared_memory/address", "1 100000 5");
  store->set("group/pair/shared_memory/verdict", "-rank 1 could not");
  EXPECT_EQ(make_shared_memory(setup, fault), nullptr);
  EXPECT_EQ(fault, "rank 1 could not");
  EXPECT_THAT(store->get("group/pair/shared_memory/fault/1"), HasSubstr("/proc/1/fd/100000"));
  setup.name = "other";
  setup.rank = 0;
  store->set("group/other/shared_memory/fault/1", "-it is elsewhere");
  EXPECT_EQ(make_shared_memory(setup, fault), nullptr);
  EXPECT_EQ(fault, "it is elsewhere");
}

class Choice : public testing::Test {
 protected:
  static std::string chosen(const char* wish, bool one_machine) {
    if (wish != nullptr) setenv("RIDGELINE_COLLECTIVES", wish, 1);
    std::string name;
    std::exception_ptr error;
    try {
      run_ranks(2, [&](int64_t rank, std::shared_ptr<Store> store) {
        MeshOptions options = rank_options();
        options.one_machine = one_machine;
        const Mesh mesh({.data = 2}, rank, store, platform::Device::select("cpu"), options);
        if (rank == 0) name = mesh.world().back_end();
      });
    } catch (...) {
      error = std::current_exception();
    }
    unsetenv("RIDGELINE_COLLECTIVES");
    if (error) std::rethrow_exception(error);
    return name;
  }
};

TEST_F(Choice, FollowsTheMachineAndTheEnvironment) {
  EXPECT_EQ(chosen(nullptr, true), "shared memory");
  EXPECT_EQ(chosen("gloo", true), "gloo");
  EXPECT_EQ(chosen("shared_memory", false), "shared memory");
  EXPECT_THROW(chosen("fast", true), InputError);
}

}  // namespace
}  // namespace ridgeline::mesh
