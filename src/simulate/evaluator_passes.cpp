// What one unit of the model takes on one rank, in each pass: kernels, messages, and what of these hides behind which.
#include <algorithm>
#include <cmath>

#include "cost/kernels.h"
#include "simulate/collective.h"
#include "simulate/evaluator.h"
#include "simulate/groups.h"
#include "simulate/kernel_time.h"
#include "spec/parameters.h"

namespace ridgeline::simulate {
namespace {

constexpr double kPipelinedShare = 0.75;  // of a message that is cut in four parts beside its product

double to_double(int64_t value) { return static_cast<double>(value); }

// Seconds of messages that are waited for and of those that may run beside compute.
struct MessageSeconds {
  double exposed = 0, hideable = 0;
};

// Exposed seconds of a ring of `ranks` that compute `block` in each step: keys take `keys` to the next rank, beside
// each step but the last, their gradients `gradients`, from the third step on beside it, and once after the last.
MessageSeconds ring_time(int64_t ranks, double block, double keys, double gradients) {
  MessageSeconds total;
  for (int64_t step = 0; step < ranks; ++step) {
    const double sent = (step + 1 < ranks ? keys : 0) + (step >= 2 ? gradients : 0);
    total.exposed += std::max(0.0, sent - block);
    total.hideable += std::min(sent, block);
  }
  total.exposed += gradients;
  return total;
}

double attention_seconds(const spec::Machine& machine, spec::Precision compute,
                         const std::vector<cost::Kernel>& kernels) {
  double total = 0;
  for (const cost::Kernel& kernel : kernels) {
    const bool is_attention =
        kernel.kind == cost::KernelKind::attention || kernel.kind == cost::KernelKind::attention_backward;
    if (is_attention) total += kernel_seconds(machine, compute, kernel);
  }
  return total;
}

MessageSeconds message_time(const spec::Machine& machine, const std::vector<cost::Message>& messages,
                            const Group& group) {
  MessageSeconds total;
  for (const cost::Message& message : messages) {
    const double seconds = collective_seconds(machine, message.kind, message.bytes, group);
    (message.hidden ? total.hideable : total.exposed) += seconds;
  }
  return total;
}

double product_seconds(const spec::Machine& machine, spec::Precision compute,
                       const std::vector<cost::Kernel>& kernels) {
  double total = 0;
  for (const cost::Kernel& kernel : kernels) {
    if (kernel.kind == cost::KernelKind::product) total += kernel_seconds(machine, compute, kernel);
  }
  return total;
}

}  // namespace

void PassTimes::add(const PassTimes& other, double times) {
  forward_compute += times * other.forward_compute;
  forward_comm += times * other.forward_comm;
  forward_context += times * other.forward_context;
  backward_compute += times * other.backward_compute;
  backward_comm += times * other.backward_comm;
  backward_context += times * other.backward_context;
  forward_expert += times * other.forward_expert;
  backward_expert += times * other.backward_expert;
  backward_weight += times * other.backward_weight;
}

void Evaluator::add_context(const spec::Strategy& strategy, const cost::UnitWork& work, PassTimes& times) const {
  if (work.forward.context.empty()) return;
  const Group group = context_group(strategy);
  const bool repeats = !work.recompute.context.empty();
  MessageSeconds forward, backward;
  if (strategy.context_kind == spec::ContextKind::ring) {
    const auto block = [&](const cost::Work& pass) {
      return attention_seconds(machine_, compute_, pass.kernels) / to_double(strategy.context);
    };
    const auto shift = [&](const cost::Message& message) {
      return collective_seconds(machine_, message.kind, message.bytes, group);
    };
    forward = ring_time(strategy.context, block(work.forward), shift(work.forward.context[0]), 0);
    backward = ring_time(strategy.context, block(work.backward), shift(work.backward.context[0]),
                         shift(work.backward.context[1]));
  } else {
    forward = message_time(machine_, work.forward.context, group);
    backward = message_time(machine_, work.backward.context, group);
  }
  const double slowdown = machine_.stack.overlap_slowdown, again = repeats ? 1 : 0;
  times.forward_context = forward.exposed;
  times.forward_compute += slowdown * forward.hideable;
  times.backward_context = backward.exposed + again * forward.exposed;
  times.backward_compute += slowdown * (backward.hideable + again * forward.hideable);
}

PassTimes Evaluator::measure(const spec::Strategy& strategy, int64_t unit) {
  const cost::UnitWork work =
      cost::unit_kernels(model_, strategy, memory_.shares(strategy), compute_, recipe_, unit);
  const Group group = tensor_group(strategy);
  const double messages = static_cast<double>(work.forward.messages.size() + work.forward.context.size());
  const double host = spec::layer_unit(0) == unit
                          ? (machine_.stack.layer_host_us + messages * machine_.stack.collective_host_us) * 1e-6
                          : 0;
  const double repeated = kernels_seconds(machine_, compute_, work.recompute.kernels);
  const bool repeats_all = strategy.recompute == spec::Recompute::full && repeated > 0;
  PassTimes times;
  times.forward_compute = kernels_seconds(machine_, compute_, work.forward.kernels);
  times.backward_compute = kernels_seconds(machine_, compute_, work.backward.kernels) + repeated;
  const MessageSeconds forth = message_time(machine_, work.forward.messages, group);
  const MessageSeconds back = message_time(machine_, work.backward.messages, group);
  times.backward_comm = back.exposed + message_time(machine_, work.recompute.messages, group).exposed;
  const Group experts = expert_group(strategy);
  times.forward_expert = message_time(machine_, work.forward.expert, experts).exposed;
  times.backward_expert = message_time(machine_, work.backward.expert, experts).exposed +
                          message_time(machine_, work.recompute.expert, experts).exposed;
  for (const cost::Kernel& kernel : work.backward.kernels) {
    if (kernel.can_be_deferred) times.backward_weight += kernel_seconds(machine_, compute_, kernel);
  }
  // A reduction of an input's gradient hides behind the product for the weight, half of the products; forward, a sum or
  // gather behind the product whose parts it follows or precedes, of which the first or last part has nothing to hide it.
  const double hidden_back =
      std::min(back.hideable, 0.5 * product_seconds(machine_, compute_, work.backward.kernels));
  const double hidden_forth = std::min(kPipelinedShare * forth.hideable,
                                       product_seconds(machine_, compute_, work.forward.kernels));
  times.backward_comm += back.hideable - hidden_back;
  times.backward_compute += hidden_back * machine_.stack.overlap_slowdown;
  times.forward_comm = forth.exposed + forth.hideable - hidden_forth;
  times.forward_compute += hidden_forth * machine_.stack.overlap_slowdown;
  add_context(strategy, work, times);
  // The host issues kernels and collectives alike; where it is slower than the device, the device waits.
  times.forward_compute = std::max(times.forward_compute, host - times.forward_comm - times.forward_context);
  times.backward_compute =
      std::max(times.backward_compute, host * (repeats_all ? 2 : 1) - times.backward_comm - times.backward_context);
  return times;
}

}  // namespace ridgeline::simulate
