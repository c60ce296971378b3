#include "nn/expert_exchange.h"

#include <numeric>

namespace ridgeline::nn {
namespace {

std::vector<int64_t> to_host(const at::Tensor& numbers) {
  const at::Tensor host = numbers.to(at::kCPU).contiguous();
  return {host.data_ptr<int64_t>(), host.data_ptr<int64_t>() + host.numel()};
}

at::Tensor empty_rows(const at::Tensor& like, int64_t rows) {
  std::vector<int64_t> shape = like.sizes().vec();
  shape[0] = rows;
  return at::empty(shape, like.options());
}

int64_t sum(const std::vector<int64_t>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), int64_t{0}); }

// Numbers of rows that come in from each rank for each expert here, as the order in which they are taken by expert.
std::vector<int64_t> grouped_by_expert(const std::vector<int64_t>& counts, int64_t ranks, int64_t experts) {
  std::vector<int64_t> begin(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), begin.begin(), int64_t{0});
  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(sum(counts)));
  for (int64_t expert = 0; expert < experts; ++expert) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const auto part = static_cast<size_t>(rank * experts + expert);
      for (int64_t row = 0; row < counts[part]; ++row) order.push_back(begin[part] + row);
    }
  }
  return order;
}

}  // namespace

ExpertPlan ExpertExchange::plan(const Routing& routing) const {
  const int64_t experts = context_.model.experts, here = experts / ranks();
  // A pick that is not taken sorts behind all experts.
  const at::Tensor expert_of = at::where(routing.weights.view(-1).gt(0), routing.picked.view(-1), experts);
  const at::Tensor counts = at::bincount(expert_of, {}, experts + 1).narrow(0, 0, experts).contiguous();
  const std::vector<int64_t> sent = to_host(counts);
  ExpertPlan plan;
  plan.picks = at::argsort(expert_of, /*stable=*/true, 0, false).narrow(0, 0, sum(sent)).clone();
  if (ranks() == 1) {
    plan.rows = sent;
    return plan;
  }
  const at::Tensor incoming = at::empty_like(counts);
  context_.expert->all_to_all(incoming, counts).wait();
  const std::vector<int64_t> received = to_host(incoming);
  plan.rows.assign(static_cast<size_t>(here), 0);
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    const auto begin = rank * here, end = begin + here;
    plan.sent.push_back(std::accumulate(sent.begin() + begin, sent.begin() + end, int64_t{0}));
    plan.received.push_back(std::accumulate(received.begin() + begin, received.begin() + end, int64_t{0}));
    for (int64_t expert = 0; expert < here; ++expert) plan.rows[expert] += received[begin + expert];
  }
  const std::vector<int64_t> order = grouped_by_expert(received, ranks(), here);
  plan.regroup = at::tensor(order, at::kLong).to(context_.device);
  return plan;
}

at::Tensor ExpertExchange::Transfer::wait() {
  work_.wait();
  source_.reset();
  if (!order_.defined()) return rows_;
  return rows_.index_select(0, order_);
}

ExpertExchange::Transfer ExpertExchange::start_dispatch(const ExpertPlan& plan, const at::Tensor& sent) const {
  Transfer transfer;
  transfer.rows_ = sent;
  if (ranks() == 1) return transfer;
  transfer.source_ = sent;
  transfer.rows_ = empty_rows(sent, sum(plan.received));
  transfer.order_ = plan.regroup;
  transfer.work_ = context_.expert->all_to_all(transfer.rows_, plan.received, sent, plan.sent);
  return transfer;
}

ExpertExchange::Transfer ExpertExchange::start_return(const ExpertPlan& plan, const at::Tensor& arrived) const {
  Transfer transfer;
  transfer.rows_ = arrived;
  if (ranks() == 1) return transfer;
  transfer.source_ = at::empty_like(arrived).index_copy_(0, plan.regroup, arrived);
  transfer.rows_ = empty_rows(arrived, sum(plan.sent));
  transfer.work_ = context_.expert->all_to_all(transfer.rows_, plan.sent, transfer.source_, plan.received);
  return transfer;
}

at::Tensor ExpertExchange::pick(const ExpertPlan& plan, const at::Tensor& rows) const {
  return rows.index_select(0, plan.picks.floor_divide(context_.model.experts_per_token));
}

// Picks in their own order, then summed, so that no two are added to one place at once.
at::Tensor ExpertExchange::sum_picks(const ExpertPlan& plan, const at::Tensor& sent, int64_t rows) const {
  const int64_t picks = rows * context_.model.experts_per_token;
  const at::Tensor all = sent.size(0) == picks ? at::empty({picks, sent.size(1)}, sent.options())
                                               : at::zeros({picks, sent.size(1)}, sent.options());
  return all.index_copy_(0, plan.picks, sent).view({rows, context_.model.experts_per_token, sent.size(1)}).sum(1);
}

}  // namespace ridgeline::nn
