// The ranks of one machine through memory that they share (CPU tensors).
#include <ATen/ATen.h>

#include <optional>
#include <utility>

#include "core/error.h"
#include "launch/threads.h"
#include "mesh/back_end.h"
#include "mesh/shared_memory/collectives.h"
#include "mesh/shared_memory/membership.h"
#include "mesh/shared_memory/messages.h"
#include "mesh/shared_memory/queue.h"

namespace ridgeline::mesh {
namespace shared_memory {
namespace {

Element element_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return Element::float32;
    case at::kBFloat16:
      return Element::bfloat16;
    case at::kHalf:
      return Element::float16;
    case at::kDouble:
      return Element::float64;
    case at::kInt:
      return Element::int32;
    case at::kLong:
      return Element::int64;
    case at::kByte:
      return Element::uint8;
    default:
      throw InternalError("no element type for {}", c10::toString(tensor.scalar_type()));
  }
}

int64_t bytes_in(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

class QueuedTransfer final : public Transfer {
 public:
  QueuedTransfer(OperationQueue& queue, std::shared_ptr<OperationQueue::Entry> entry)
      : queue_(queue), entry_(std::move(entry)) {}
  void wait() override { queue_.wait(*entry_); }
  bool done() override { return entry_->done.load(); }

 private:
  OperationQueue& queue_;
  std::shared_ptr<OperationQueue::Entry> entry_;
};

class MessageTransfer final : public Transfer {
 public:
  MessageTransfer(Messages& messages, std::shared_ptr<Message> message)
      : messages_(messages), message_(std::move(message)) {}
  void wait() override { messages_.wait(*message_); }
  bool done() override { return message_->done.load(); }

 private:
  Messages& messages_;
  std::shared_ptr<Message> message_;
};

class SharedMemoryBackEnd final : public BackEnd {
 public:
  SharedMemoryBackEnd(Segment segment, const GroupSetup& setup)
      : membership_(std::move(segment), setup.members, setup.rank, setup.timeout, launch::usable_cores()),
        collectives_(membership_),
        messages_(membership_),
        queue_([this] { membership_.leave(); }) {}

  ~SharedMemoryBackEnd() override {
    membership_.leave();
    queue_.close();
    messages_.close();
  }

  void all_have_attached() { membership_.all_have_attached(); }
  std::string name() const override { return "shared memory"; }

  std::shared_ptr<Transfer> all_reduce(at::Tensor tensor, Reduction reduction) override {
    return queued([this, tensor, reduction] {
      collectives_.all_reduce(tensor.data_ptr(), tensor.numel(), element_of(tensor), reduction);
    });
  }
  std::shared_ptr<Transfer> all_gather(at::Tensor out, at::Tensor in) override {
    return queued([this, out, in] { collectives_.all_gather(out.data_ptr(), in.const_data_ptr(), bytes_in(in)); });
  }
  std::shared_ptr<Transfer> reduce_scatter(at::Tensor out, at::Tensor in) override {
    return queued([this, out, in] {
      collectives_.reduce_scatter(out.data_ptr(), in.const_data_ptr(), out.numel(), element_of(out));
    });
  }
  std::shared_ptr<Transfer> broadcast(at::Tensor tensor, int64_t root) override {
    return queued([this, tensor, root] { collectives_.broadcast(tensor.data_ptr(), bytes_in(tensor), root); });
  }
  std::shared_ptr<Transfer> all_to_all(at::Tensor out, at::Tensor in) override {
    return queued([this, out, in] {
      collectives_.all_to_all(out.data_ptr(), in.const_data_ptr(), bytes_in(in) / membership_.size());
    });
  }
  std::shared_ptr<Transfer> all_to_all_uneven(at::Tensor out, std::vector<int64_t> out_rows, at::Tensor in,
                                              std::vector<int64_t> in_rows) override {
    const int64_t row = bytes_in(in.size(0) > 0 ? in[0] : out.size(0) > 0 ? out[0] : at::empty({0}));
    for (int64_t& rows : out_rows) rows *= row;
    for (int64_t& rows : in_rows) rows *= row;
    return queued([this, out, out_rows, in, in_rows] {
      collectives_.all_to_all_uneven(out.data_ptr(), out_rows, in.const_data_ptr(), in_rows);
    });
  }
  std::shared_ptr<Transfer> barrier() override {
    return queued([this] { collectives_.barrier(); });
  }

  std::shared_ptr<Transfer> send(at::Tensor tensor, int64_t peer, int64_t tag) override {
    auto keep = std::make_shared<at::Tensor>(tensor);
    return std::make_shared<MessageTransfer>(
        messages_, messages_.send(tensor.const_data_ptr(), bytes_in(tensor), peer, tag, std::move(keep)));
  }
  std::shared_ptr<Transfer> receive(at::Tensor tensor, int64_t peer, int64_t tag) override {
    auto keep = std::make_shared<at::Tensor>(tensor);
    return std::make_shared<MessageTransfer>(
        messages_, messages_.receive(tensor.data_ptr(), bytes_in(tensor), peer, tag, std::move(keep)));
  }

 private:
  template <typename Operation>
  std::shared_ptr<Transfer> queued(Operation operation) {
    return std::make_shared<QueuedTransfer>(queue_, queue_.start(std::move(operation)));
  }

  Membership membership_;
  Collectives collectives_;
  // Stop first, in this order.
  Messages messages_;
  OperationQueue queue_;
};

// What the members tell each other while they set up, in the store.
class Agreement {
 public:
  explicit Agreement(const GroupSetup& setup) : setup_(setup) {}

  void offer(const std::string& address) { setup_.store->set(key("address"), address); }
  std::string address() { return setup_.store->get(key("address")); }

  // Whether all members have attached. `fault` is why this one could not, or empty; returns some member's fault.
  std::string conclude(const std::string& fault) {
    const auto size = static_cast<int64_t>(setup_.members.size());
    if (setup_.rank != 0) {
      setup_.store->set(key(fmt::format("fault/{}", setup_.rank)), said(fault));
      return heard(setup_.store->get(key("verdict")));
    }
    std::string verdict = fault;
    for (int64_t rank = 1; rank < size; ++rank) {
      const std::string other = heard(setup_.store->get(key(fmt::format("fault/{}", rank))));
      if (verdict.empty()) verdict = other;
    }
    setup_.store->set(key("verdict"), said(verdict));
    return verdict;
  }

 private:
  std::string key(const std::string& what) const { return fmt::format("group/{}/shared_memory/{}", setup_.name, what); }
  // Not all stores tell an empty value from none.
  static std::string said(const std::string& fault) { return "-" + fault; }
  static std::string heard(const std::string& text) { return text.substr(std::min<std::size_t>(1, text.size())); }

  const GroupSetup& setup_;
};

std::optional<Segment> make_segment(const GroupSetup& setup, Agreement& agreement, std::string& fault) {
  const auto shape = SegmentShape::of_group(static_cast<int64_t>(setup.members.size()));
  std::string address = "none";
  std::optional<Segment> segment;
  try {
    if (setup.rank == 0) {
      segment.emplace(Segment::create(shape));
      address = segment->address();
    }
  } catch (const Failure& failure) {
    fault = failure.what();
  }
  if (setup.rank == 0) {
    agreement.offer(address);
    return segment;
  }
  address = agreement.address();
  if (address == "none") return std::nullopt;  // the first member says why
  try {
    segment.emplace(Segment::attach(address, shape));
  } catch (const Failure& failure) {
    fault = failure.what();
  }
  return segment;
}

}  // namespace
}  // namespace shared_memory

std::shared_ptr<BackEnd> make_shared_memory(const GroupSetup& setup, std::string& fault) {
  fault.clear();
  shared_memory::Agreement agreement(setup);
  std::optional<shared_memory::Segment> segment = make_segment(setup, agreement, fault);
  std::shared_ptr<shared_memory::SharedMemoryBackEnd> back_end;
  // Before the others know: each has its seat when the first operation begins.
  if (segment) back_end = std::make_shared<shared_memory::SharedMemoryBackEnd>(std::move(*segment), setup);
  fault = agreement.conclude(fault);
  if (!fault.empty()) return nullptr;
  RIDGELINE_ASSERT(back_end != nullptr);
  back_end->all_have_attached();
  return back_end;
}

}  // namespace ridgeline::mesh
