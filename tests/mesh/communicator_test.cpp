#include "mesh/communicator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include <chrono>
#include <stdexcept>

#include "core/error.h"
#include "mesh/ranks.h"

namespace ridgeline::mesh {
namespace {

using testing::HasSubstr;

const platform::Device& cpu() {
  static const platform::Device device = platform::Device::select("cpu");
  return device;
}

Mesh line(int64_t ranks, int64_t rank, std::shared_ptr<Store> store,
          BackEndKind back_end = BackEndKind::shared_memory) {
  MeshOptions options = rank_options();
  options.back_end = back_end;
  return Mesh({.data = ranks}, rank, std::move(store), cpu(), options);
}

struct Case {
  int64_t ranks;
  at::ScalarType type;
  BackEndKind back_end = BackEndKind::shared_memory;
};

class Collectives : public testing::TestWithParam<Case> {
 protected:
  // Small whole numbers that differ by rank: their sums are exact in every type.
  static at::Tensor input(int64_t rank, int64_t elements) {
    return (at::arange(elements, at::kLong) % 5 + rank).to(GetParam().type);
  }
  static Mesh make(int64_t rank, std::shared_ptr<Store> store) {
    return line(GetParam().ranks, rank, std::move(store), GetParam().back_end);
  }
  static at::Tensor empty(int64_t elements) { return at::full({elements}, 99, GetParam().type); }
};

TEST_P(Collectives, AllReduceSumsAndTakesTheLargest) {
  const int64_t size = GetParam().ranks;
  run_ranks(size, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = make(rank, store);
    at::Tensor expected = at::zeros({7}, GetParam().type);
    for (int64_t peer = 0; peer < size; ++peer) expected += input(peer, 7);
    at::Tensor sum = input(rank, 7);
    mesh.world().all_reduce(sum).wait();
    EXPECT_TRUE(sum.equal(expected)) << sum;
    at::Tensor largest = input(rank, 7);
    mesh.world().all_reduce(largest, Reduction::max).wait();
    EXPECT_TRUE(largest.equal(input(size - 1, 7))) << largest;
  });
}

TEST_P(Collectives, AllGatherPutsRanksInOrder) {
  const int64_t size = GetParam().ranks;
  run_ranks(size, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = make(rank, store);
    const at::Tensor out = empty(size * 6).view({size * 2, 3});
    mesh.world().all_gather(out, input(rank, 6).view({2, 3})).wait();
    for (int64_t peer = 0; peer < size; ++peer) {
      EXPECT_TRUE(out.slice(0, peer * 2, peer * 2 + 2).equal(input(peer, 6).view({2, 3}))) << out;
    }
  });
}

TEST_P(Collectives, ReduceScatterGivesEachRankItsPartOfTheSum) {
  const int64_t size = GetParam().ranks;
  run_ranks(size, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = make(rank, store);
    at::Tensor sum = at::zeros({size * 3}, GetParam().type);
    for (int64_t peer = 0; peer < size; ++peer) sum += input(peer, size * 3);
    const at::Tensor out = empty(3);
    const at::Tensor in = input(rank, size * 3);
    mesh.world().reduce_scatter(out, in).wait();
    EXPECT_TRUE(out.equal(sum.slice(0, rank * 3, rank * 3 + 3))) << out;
    EXPECT_TRUE(in.equal(input(rank, size * 3))) << "the input was changed";
  });
}

TEST_P(Collectives, BroadcastComesFromTheRoot) {
  const int64_t size = GetParam().ranks;
  run_ranks(size, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = make(rank, store);
    for (int64_t root = 0; root < size; ++root) {
      at::Tensor tensor = input(rank + root, 5);
      mesh.world().broadcast(tensor, root).wait();
      EXPECT_TRUE(tensor.equal(input(root + root, 5)));
    }
  });
}

TEST_P(Collectives, AllToAllExchangesParts) {
  const int64_t size = GetParam().ranks;
  run_ranks(size, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = make(rank, store);
    // Part i of rank r is (r, i).
    at::Tensor in = at::empty({size, 2}, GetParam().type);
    for (int64_t peer = 0; peer < size; ++peer) {
      in[peer][0] = rank;
      in[peer][1] = peer;
    }
    const at::Tensor out = empty(size * 2).view({size, 2});
    mesh.world().all_to_all(out, in).wait();
    for (int64_t peer = 0; peer < size; ++peer) {
      EXPECT_EQ(out[peer][0].item<double>(), peer);
      EXPECT_EQ(out[peer][1].item<double>(), rank);
    }
  });
}

// Part (from, to) has from * to + to rows of two, so that some are empty, and one rank sends or receives nothing at all.
TEST_P(Collectives, AllToAllWithPartsOfAnySize) {
  const int64_t size = GetParam().ranks;
  run_ranks(size, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = make(rank, store);
    const auto rows = [](int64_t from, int64_t to) { return (from * to + to) % 5; };
    std::vector<int64_t> sent, received;
    for (int64_t peer = 0; peer < size; ++peer) {
      sent.push_back(rows(rank, peer));
      received.push_back(rows(peer, rank));
    }
    const auto sum = [](const std::vector<int64_t>& list) {
      return std::accumulate(list.begin(), list.end(), int64_t{0});
    };
    const at::Tensor in = empty(2 * sum(sent)).view({-1, 2}), out = empty(2 * sum(received)).view({-1, 2});
    int64_t begin = 0;
    for (int64_t peer = 0; peer < size; ++peer) {
      in.narrow(0, begin, sent[peer]).select(1, 0).fill_(rank);
      in.narrow(0, begin, sent[peer]).select(1, 1).fill_(peer);
      begin += sent[peer];
    }
    mesh.world().all_to_all(out, received, in, sent).wait();
    begin = 0;
    for (int64_t peer = 0; peer < size; ++peer) {
      const at::Tensor part = out.narrow(0, begin, received[peer]);
      EXPECT_TRUE(part.select(1, 0).eq(peer).all().item<bool>()) << "from " << peer << " to " << rank;
      EXPECT_TRUE(part.select(1, 1).eq(rank).all().item<bool>()) << "from " << peer << " to " << rank;
      begin += received[peer];
    }
  });
}

TEST_P(Collectives, MessagesGoRoundARing) {
  const int64_t size = GetParam().ranks;
  if (size == 1) GTEST_SKIP() << "nobody to send to";
  run_ranks(size, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = make(rank, store);
    const at::Tensor out = empty(4);
    Work received = mesh.world().receive(out, (rank + size - 1) % size, 3);
    Work sent = mesh.world().send(input(rank, 4), (rank + 1) % size, 3);
    received.wait();
    sent.wait();
    EXPECT_TRUE(out.equal(input((rank + size - 1) % size, 4)));
  });
}

TEST_P(Collectives, ShiftGoesToTheNextRank) {
  const int64_t size = GetParam().ranks;
  run_ranks(size, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = make(rank, store);
    // Two at once, larger than what is on its way without a receiver.
    const int64_t elements = 300'000;
    const at::Tensor first = empty(elements), second = empty(4);
    Work one = mesh.world().shift(first, input(rank, elements));
    Work other = mesh.world().shift(second, input(rank + 100, 4));
    other.wait();
    one.wait();
    const int64_t before = (rank + size - 1) % size;
    EXPECT_TRUE(first.equal(input(before, elements)));
    EXPECT_TRUE(second.equal(input(before + 100, 4)));
  });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kLong, at::kInt}) {
    for (const int64_t ranks : {2, 4}) all.push_back({ranks, type});
    all.push_back({2, type, BackEndKind::gloo});
  }
  for (const int64_t ranks : {1, 3, 8}) all.push_back({ranks, at::kFloat});
  for (const int64_t ranks : {3, 4}) all.push_back({ranks, at::kFloat, BackEndKind::gloo});
  all.push_back({2, at::kByte});
  return all;
}

INSTANTIATE_TEST_SUITE_P(RanksAndTypes, Collectives, testing::ValuesIn(cases()), [](const auto& info) {
  return std::string(c10::toString(info.param.type)) + "x" + std::to_string(info.param.ranks) +
         (info.param.back_end == BackEndKind::gloo ? "OnGloo" : "");
});

TEST(Communicator, RunsManyOperationsAtOnceAndSurvivesLargeTensors) {
  run_ranks(4, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = line(4, rank, store);
    std::vector<at::Tensor> tensors;
    std::vector<Work> works;
    for (int64_t index = 0; index < 16; ++index) {
      tensors.push_back(at::full({1 << 16}, static_cast<double>(rank + index), at::kFloat));
      works.push_back(mesh.world().all_reduce(tensors.back()));
    }
    for (Work& work : works) work.wait();
    for (int64_t index = 0; index < 16; ++index) {
      const at::Tensor& tensor = tensors[static_cast<std::size_t>(index)];
      EXPECT_EQ(tensor.min().item<double>(), 6.0 + 4.0 * static_cast<double>(index));
      EXPECT_EQ(tensor.max().item<double>(), 6.0 + 4.0 * static_cast<double>(index));
    }
  });
}

TEST(Communicator, BarrierHoldsUntilTheLastHasCome) {
  std::atomic<int> arrived{0};
  run_ranks(4, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = line(4, rank, store);
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * rank));
    arrived.fetch_add(1);
    mesh.world().barrier().wait();
    EXPECT_EQ(arrived.load(), 4);
  });
}

TEST(Communicator, TagsKeepMessagesApart) {
  run_ranks(2, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = line(2, rank, store);
    at::Tensor first = at::full({3}, 1.0);
    at::Tensor second = at::full({3}, 2.0);
    if (rank == 0) {
      Work one = mesh.world().send(first, 1, 10);
      Work two = mesh.world().send(second, 1, 20);
      one.wait();
      two.wait();
    } else {
      const at::Tensor a = at::empty({3});
      const at::Tensor b = at::empty({3});
      mesh.world().receive(a, 0, 20).wait();
      mesh.world().receive(b, 0, 10).wait();
      EXPECT_TRUE(a.equal(second));
      EXPECT_TRUE(b.equal(first));
    }
  });
}

TEST(Communicator, CarriesNothingWhereATensorIsEmpty) {
  run_ranks(2, [&](int64_t rank, std::shared_ptr<Store> store) {
    const Mesh mesh = line(2, rank, store);
    mesh.world().all_reduce(at::empty({0})).wait();
    mesh.world().all_gather(at::empty({0}), at::empty({0})).wait();
    if (rank == 0) mesh.world().send(at::empty({0}), 1).wait();
    if (rank == 1) mesh.world().receive(at::empty({0}), 0).wait();
    at::Tensor one = at::ones({1});
    mesh.world().all_reduce(one).wait();
    EXPECT_EQ(one.item<double>(), 2.0);
  });
}

TEST(Communicator, TellsObserversWhatWasMoved) {
  run_ranks(2, [&](int64_t rank, std::shared_ptr<Store> store) {
    Mesh mesh = line(2, rank, store);
    RecordingObserver observer;
    mesh.observe(&observer);
    mesh.group(Axis::data).all_gather(at::empty({8}, at::kBFloat16), at::ones({4}, at::kBFloat16)).wait();
    at::Tensor tensor = at::ones({3}, at::kDouble);
    mesh.world().all_reduce(tensor).wait();
    if (rank == 0) mesh.world().send(tensor, 1).wait();
    if (rank == 1) mesh.world().receive(tensor, 0).wait();
    mesh.observe(nullptr);
    mesh.world().barrier().wait();
    const std::vector<OperationRecord> records = observer.take();
    ASSERT_EQ(records.size(), 3u);
    EXPECT_EQ(records[0].operation, Operation::all_gather);
    EXPECT_EQ(records[0].group, "data");
    EXPECT_EQ(records[0].group_size, 2);
    EXPECT_EQ(records[0].elements, 8);
    EXPECT_EQ(records[0].bytes, 16);
    EXPECT_EQ(records[1].group, "world");
    EXPECT_EQ(records[1].bytes, 24);
    EXPECT_EQ(records[2].operation, rank == 0 ? Operation::send : Operation::receive);
    EXPECT_EQ(records[2].peer, 1 - rank);
    EXPECT_EQ(records[2].sequence, records[1].sequence + 1);
    for (const OperationRecord& record : records) {
      EXPECT_LE(record.issued, record.waited);
      EXPECT_LE(record.waited, record.done);
    }
  });
}

TEST(Communicator, OfOneRankNeedsNoBackEnd) {
  const Communicator alone = Communicator::make_single("alone");
  at::Tensor tensor = at::arange(4, at::kFloat);
  Work work = alone.all_reduce(tensor);
  EXPECT_TRUE(work.done());
  work.wait();
  work.wait();
  const at::Tensor out = at::empty({4});
  alone.all_gather(out, tensor).wait();
  EXPECT_TRUE(out.equal(tensor));
  out.zero_();
  alone.reduce_scatter(out, tensor).wait();
  EXPECT_TRUE(out.equal(tensor));
  alone.barrier().wait();
  EXPECT_THROW(alone.send(tensor, 0).wait(), InternalError);
}

TEST(Communicator, RefusesTensorsThatDoNotFit) {
  const Communicator dry("dry", {0, 1, 2, 3}, 1, make_fake(1, 4));
  EXPECT_THROW(dry.all_gather(at::empty({7}), at::empty({2})).wait(), InternalError);
  EXPECT_THROW(dry.all_gather(at::empty({8}), at::empty({2}, at::kDouble)).wait(), InternalError);
  EXPECT_THROW(dry.reduce_scatter(at::empty({2}), at::empty({9})).wait(), InternalError);
  EXPECT_THROW(dry.all_reduce(at::empty({4, 4}).t()).wait(), InternalError);
  EXPECT_THROW(dry.all_reduce(at::empty({2}, at::kBool)).wait(), InternalError);
  EXPECT_THROW(dry.all_to_all(at::empty({6}), at::empty({6})).wait(), InternalError);
  EXPECT_THROW(dry.broadcast(at::empty({6}), 4).wait(), InternalError);
  EXPECT_THROW(dry.send(at::empty({6}), 1).wait(), InternalError);
}

TEST(FakeBackEnd, GivesFiniteResultsForAMeshOfAnySize) {
  Mesh mesh = Mesh::dry({.pipeline = 8, .data = 16, .tensor = 8}, 1000, cpu());
  RecordingObserver observer;
  mesh.observe(&observer);
  const at::Tensor part = at::ones({3});
  const at::Tensor whole = at::empty({24});
  mesh.group(Axis::tensor).all_gather(whole, part).wait();
  EXPECT_TRUE(whole.equal(at::ones({24})));
  mesh.group(Axis::tensor).reduce_scatter(part, at::arange(24, at::kFloat)).wait();
  EXPECT_EQ(part[0].item<double>(), 3.0 * static_cast<double>(mesh.coordinate(Axis::tensor)));
  const at::Tensor received = at::full({2}, 5.0);
  mesh.forward_pipeline().receive(received, mesh.coordinate(Axis::pipeline) - 1).wait();
  EXPECT_TRUE(received.equal(at::zeros({2})));
  mesh.group(Axis::data).all_reduce(at::empty({1 << 20}, at::TensorOptions().device(at::kMeta))).wait();
  const std::vector<OperationRecord> records = observer.take();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[3].bytes, 4 << 20);
  EXPECT_EQ(records[3].group_size, 16);
}

class Failing : public testing::TestWithParam<BackEndKind> {};

TEST_P(Failing, SaysWhichOperationFailedWhenAPeerLeaves) {
  try {
    run_ranks(2, [&](int64_t rank, std::shared_ptr<Store> store) {
      const Mesh mesh = line(2, rank, store, GetParam());
      if (rank == 1) return;
      at::Tensor tensor = at::ones({10});
      mesh.world().all_reduce(tensor).wait();
    });
    FAIL() << "expected a CommunicationFailure";
  } catch (const CommunicationFailure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("all_reduce of 40 bytes"));
    EXPECT_THAT(failure.what(), HasSubstr("group \"world\" (rank 0, number 0 of 2)"));
    EXPECT_THAT(failure.what(), testing::Not(HasSubstr("Exception raised from")));
    EXPECT_EQ(failure.exit_code(), 1);
  }
}

TEST_P(Failing, TimesOut) {
  try {
    run_ranks(2, [&](int64_t rank, std::shared_ptr<Store> store) {
      MeshOptions options = rank_options();
      options.timeout = 1.0;
      options.back_end = GetParam();
      const Mesh mesh({.data = 2}, rank, store, cpu(), options);
      at::Tensor tensor = at::ones({10});
      if (rank == 1) {
        store->get("rank 0 has given up");
        return;
      }
      try {
        mesh.world().receive(tensor, 1).wait();
      } catch (const CommunicationFailure&) {
        store->set("rank 0 has given up", "");
        throw;
      }
    });
    FAIL() << "expected a CommunicationFailure";
  } catch (const CommunicationFailure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("receive of 40 bytes"));
    EXPECT_THAT(failure.what(), HasSubstr("from rank 1"));
  }
}

TEST_P(Failing, RunRanksThrowsTheCauseAndNotItsConsequences) {
  EXPECT_THROW(run_ranks(4,
                         [&](int64_t rank, std::shared_ptr<Store> store) {
                           const Mesh mesh = line(4, rank, store, GetParam());
                           if (rank == 2) throw std::runtime_error("the cause");
                           at::Tensor tensor = at::ones({10});
                           mesh.world().all_reduce(tensor).wait();
                         }),
               std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(BackEnds, Failing, testing::Values(BackEndKind::shared_memory, BackEndKind::gloo),
                         [](const auto& info) { return info.param == BackEndKind::gloo ? "Gloo" : "SharedMemory"; });

}  // namespace
}  // namespace ridgeline::mesh
