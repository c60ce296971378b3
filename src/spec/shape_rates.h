// Rates of single shapes of kernels and collectives on a machine, where they were measured or fitted: how much longer
// they take than the formulas of simulate/kernel_time.h and simulate/collective.h say.
//
// Products of matrices do not follow a smooth law (tiles, waves, algorithms that the library picks), nor do collectives
// (protocols that change with the size), so a machine file can hold what runs have shown, a line a shape:
//
//   [shapes]
//   products = ["1 x 4096 x 3072 x 1024: 1.08"]         # batch x m x n x k: time over the formula's
//   collectives = ["all_reduce 8 (8 a node) 33554432: 0.94"]   # kind, ranks (of them on a node), bytes of the tensor
//
// Shapes that are not listed take the average of those near them (simulate/shape_factor.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ridgeline::spec {

struct ProductRate {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  double factor = 1;
};

struct CollectiveRate {
  std::string kind;  // all_reduce, all_gather, reduce_scatter, all_to_all, send
  int64_t ranks = 2;
  int64_t per_node = 1;
  double bytes = 0;
  double factor = 1;
};

struct ShapeRates {
  std::vector<ProductRate> products;
  std::vector<CollectiveRate> collectives;
};

// Throws InputError that says what was expected.
ProductRate parse_product_rate(const std::string& text);
CollectiveRate parse_collective_rate(const std::string& text);
std::string to_string(const ProductRate& rate);
std::string to_string(const CollectiveRate& rate);

}  // namespace ridgeline::spec
