// ExpertExchange: takes rows to the experts that they were routed to, on whichever rank these lie, and back.
//
//   sent     a row for each pick that its expert takes, in the order of experts, tokens in order within one
//   arrived  the same rows on the experts' ranks, those of one expert together, of each in order of the ranks they came from
//
// On one rank the two are the same. Over several, numbers of rows are exchanged first, then rows, in parts of any size
// (all-to-all); nothing is padded and nothing dropped here.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "mesh/communicator.h"
#include "nn/router.h"

namespace ridgeline::nn {

// Where the rows of one micro-batch go.
struct ExpertPlan {
  at::Tensor picks;    // int64 [sent]: row * experts_per_token + number of the pick
  at::Tensor regroup;  // int64 [arrived]: place among the rows as they come in, rank after rank; undefined on one rank
  std::vector<int64_t> sent, received;  // rows to and from each rank
  std::vector<int64_t> rows;            // arrived, of each expert here
};

class ExpertExchange {
 public:
  explicit ExpertExchange(const Context& context) : context_(context) {}

  ExpertPlan plan(const Routing& routing) const;

  // A transfer under way; wait() gives the rows in their new order.
  class Transfer {
   public:
    at::Tensor wait();

   private:
    friend class ExpertExchange;
    mesh::Work work_;
    at::Tensor source_, rows_;
    at::Tensor order_;  // in which rows are taken, where it is another than theirs
  };
  // values [sent] or [sent, columns] -> arrived, and the other way.
  Transfer start_dispatch(const ExpertPlan& plan, const at::Tensor& sent) const;
  Transfer start_return(const ExpertPlan& plan, const at::Tensor& arrived) const;

  // Of rows [rows, hidden] one for each pick, in the order of sent ones; and the sum over each row's picks back.
  at::Tensor pick(const ExpertPlan& plan, const at::Tensor& rows) const;
  at::Tensor sum_picks(const ExpertPlan& plan, const at::Tensor& sent, int64_t rows) const;

 private:
  int64_t ranks() const { return context_.expert == nullptr ? 1 : context_.expert->size(); }

  const Context& context_;
};

}  // namespace ridgeline::nn
