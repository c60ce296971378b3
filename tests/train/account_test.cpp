// What the cost room says of a step is what the trainer did: FLOPs, by an observer of libtorch's operators, and bytes
// through each group, by an observer of the communicators; exactly, on every rank of every layout.
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "cost/flops.h"
#include "cost/traffic.h"
#include "mesh/observer.h"
#include "train/layouts.h"

namespace ridgeline::train {
namespace {

// FLOPs of the matrix products and the attention of this thread since the last call of take().
class FlopCounter {
 public:
  FlopCounter() {
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(count).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  ~FlopCounter() { at::removeCallback(handle_); }
  static double take() { return std::exchange(total_, 0.0); }

 private:
  // a [.., m, k] times b [.., k, n].
  static double product(const at::Tensor& a, const at::Tensor& b) {
    return 2.0 * static_cast<double>(a.numel()) * static_cast<double>(b.size(-1));
  }
  // Causal attention in full, which is twice what is done; so blocks of it that are seen whole count twice. A backward
  // is twice its forward, whatever the kernel does again inside.
  static double attention(const at::Tensor& q, const at::Tensor& k, bool causal) {
    return (causal ? 4.0 : 8.0) * static_cast<double>(q.numel()) * static_cast<double>(k.size(2));
  }
  static std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& function) {
    const std::string name = function.name();
    const auto tensor = [&](size_t index) { return function.inputs()[index].toTensor(); };
    if (name == "aten::mm" || name == "aten::bmm") total_ += product(tensor(0), tensor(1));
    if (name == "aten::addmm" || name == "aten::addmm_") total_ += product(tensor(1), tensor(2));
    // (query, key, value, dropout, causal ...), (output gradient, query, key, value, output, sums, dropout, causal ...)
    if (name == "aten::_scaled_dot_product_flash_attention_for_cpu") {
      total_ += attention(tensor(0), tensor(1), function.inputs()[4].toBool());
    }
    if (name == "aten::_scaled_dot_product_flash_attention_for_cpu_backward") {
      total_ += 2 * attention(tensor(1), tensor(2), function.inputs()[7].toBool());
    }
    return nullptr;
  }
  static thread_local double total_;
  at::CallbackHandle handle_;
};
thread_local double FlopCounter::total_ = 0.0;

cost::Traffic traffic_of(const std::vector<mesh::OperationRecord>& records, const std::string& group) {
  cost::Traffic traffic;
  for (const mesh::OperationRecord& record : records) {
    if (record.group != group) continue;
    switch (record.operation) {
      case mesh::Operation::all_reduce:
        traffic.all_reduce += record.bytes;
        break;
      case mesh::Operation::all_gather:
        traffic.all_gather += record.bytes;
        break;
      case mesh::Operation::reduce_scatter:
        traffic.reduce_scatter += record.bytes;
        break;
      case mesh::Operation::send:
        traffic.send += record.bytes;
        break;
      case mesh::Operation::receive:
        traffic.receive += record.bytes;
        break;
      case mesh::Operation::all_to_all:
        traffic.all_to_all += record.bytes;
        break;
      case mesh::Operation::shift:
        traffic.shift += record.bytes;
        break;
      default:
        ADD_FAILURE() << "an operation that no step has: " << to_string(record.operation);
    }
  }
  return traffic;
}

std::string text(const cost::Traffic& traffic) {
  return fmt::format("all_reduce {}, all_gather {}, reduce_scatter {}, send {}, receive {}, all_to_all {}, shift {}",
                     traffic.all_reduce, traffic.all_gather, traffic.reduce_scatter, traffic.send, traffic.receive,
                     traffic.all_to_all, traffic.shift);
}

void expect_equal(const cost::Traffic& actual, const cost::Traffic& expected, const char* group) {
  EXPECT_EQ(text(actual), text(expected)) << group;
}

cost::Traffic sum(const cost::Traffic& a, const cost::Traffic& b) {
  return {a.all_reduce + b.all_reduce, a.all_gather + b.all_gather, a.reduce_scatter + b.reduce_scatter,
          a.send + b.send, a.receive + b.receive, a.all_to_all + b.all_to_all};
}

class AccountTest : public testing::TestWithParam<Layout> {};

TEST_P(AccountTest, SaysWhatTheStepDid) {
  spec::TrainSpec spec = spec_of(GetParam(), token_file());
  const int64_t ranks = GetParam().ranks();
  spec::derive_data(spec.strategy, spec.model, ranks);
  with_trainers(spec, ranks, [&](Trainer& trainer, const mesh::Mesh& mesh) {
    trainer.step(0);
    mesh.world().barrier().wait();
    mesh::RecordingObserver observer;
    mesh.observe(&observer);
    FlopCounter counter;
    FlopCounter::take();
    trainer.step(1);
    const double flops = FlopCounter::take();
    mesh.observe(nullptr);
    const std::vector<mesh::OperationRecord> records = observer.take();

    const int64_t stage = mesh.coordinate(mesh::Axis::pipeline), tensor = mesh.coordinate(mesh::Axis::tensor);
    SCOPED_TRACE(fmt::format("stage {}, tensor rank {}", stage, tensor));
    const double expected_flops = cost::device_flops(spec.model, spec.strategy, stage, tensor).hardware_flops() *
                                  static_cast<double>(spec.strategy.micro_batches());
    EXPECT_DOUBLE_EQ(flops, expected_flops);
    const cost::StepTraffic expected =
        cost::step_traffic(spec.model, spec.strategy, spec.precision.compute, stage, tensor);
    expect_equal(traffic_of(records, "tensor"), expected.tensor, "tensor");
    expect_equal(traffic_of(records, "context"), expected.context, "context");
    expect_equal(sum(traffic_of(records, "forward"), traffic_of(records, "backward")), expected.pipeline, "pipeline");
    expect_equal(traffic_of(records, "tied"), expected.tied, "tied");
    cost::Traffic data;
    for (const char* group : {"data", "shard", "replicas", "expert_data", "expert_shard", "expert_replicas"}) {
      data = sum(data, traffic_of(records, group));
    }
    expect_equal(data, expected.data, "data");
    expect_equal(traffic_of(records, "expert"), expected.expert, "expert");
    mesh.world().barrier().wait();
  });
}

// Dropout changes neither; with it attention runs a kernel that repeats products inside.
INSTANTIATE_TEST_SUITE_P(
    Layouts, AccountTest,
    testing::Values(
        Layout{1, 1, 1, ""}, Layout{1, 1, 1, "full"}, Layout{1, 1, 1, "selective mb2"}, Layout{2, 1, 1, ""},
        Layout{2, 1, 1, "sp"}, Layout{2, 1, 1, "sp full untied"}, Layout{4, 1, 1, "full"}, Layout{1, 2, 1, "gpipe"},
        Layout{1, 2, 1, "uneven untied"}, Layout{1, 1, 2, "zero tiny_buckets"}, Layout{1, 1, 4, "mb2"},
        Layout{1, 1, 4, "zero hybrid"}, Layout{2, 2, 1, "sp"}, Layout{2, 1, 2, "sp zero tiny_buckets"},
        Layout{1, 4, 1, "gpipe uneven"}, Layout{1, 2, 2, "vp2 zero tiny_buckets"}, Layout{1, 4, 1, "vp2 deep"},
        Layout{1, 2, 1, "zb full"}, Layout{2, 2, 1, "zb sp selective"}, Layout{1, 2, 1, "zbv"},
        Layout{2, 2, 2, "zbv sp zero full"}, Layout{1, 4, 1, "zbv deep untied"}, Layout{2, 2, 2, "bf16 sp zero"},
        Layout{1, 2, 2, "fp16 selective"}, Layout{8, 1, 1, "sp"}, Layout{1, 1, 2, "zero2"},
        Layout{1, 1, 4, "zero3 mb2"}, Layout{1, 1, 2, "zero3 full"}, Layout{1, 1, 4, "zero3 hybrid untied"},
        Layout{2, 1, 4, "zero3 sp hybrid"}, Layout{1, 2, 2, "zero2 gpipe"}, Layout{1, 2, 2, "zero3"},
        Layout{1, 2, 2, "zero3 vp2"}, Layout{1, 2, 2, "zero2 zb untied"}, Layout{1, 2, 2, "zero3 zb"},
        Layout{2, 2, 2, "zero3 zbv sp full"}, Layout{1, 4, 2, "zero3 deep bf16"}, Layout{1, 1, 1, "ring2"},
        Layout{1, 1, 1, "ring4 full mb2"}, Layout{1, 1, 1, "ring3 seq24"}, Layout{2, 1, 2, "ring2 sp zero"},
        Layout{1, 2, 2, "ring2 zb bf16"}, Layout{1, 1, 2, "ring2 zero3"}, Layout{1, 1, 2, "heads4 zero hybrid"},
        Layout{1, 2, 1, "heads2 full mb2"}, Layout{2, 1, 1, "heads4 sp selective"}, Layout{1, 1, 1, "llama3 ring4"},
        Layout{1, 1, 1, "llama3 heads8"}, Layout{2, 2, 1, "qwen3 heads2 bf16"}, Layout{1, 1, 2, "zero3 llama"},
        Layout{2, 1, 2, "zero2 qwen3"}, Layout{1, 2, 2, "zero3 qwen2 full"},
                    // With all experts for each token routing is even, and the account exact.
                    Layout{1, 1, 1, "mixtral all_experts"}, Layout{2, 1, 1, "qwen3_moe all_experts sp full"},
                    Layout{2, 1, 1, "qwen3_moe all_experts whole mb2"}, Layout{2, 1, 2, "qwen3_moe all_experts ep2 zero"},
                    Layout{2, 1, 1, "shared_experts all_experts ep2 whole sp"},
                    Layout{1, 1, 4, "shared_experts all_experts ep2 zero3"},
                    Layout{2, 1, 2, "mixtral all_experts ep4 whole zero full"},
                    Layout{1, 2, 4, "qwen3_moe all_experts ep2 zero3 hybrid zb"}),
    [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace ridgeline::train
