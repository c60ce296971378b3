// The covariance of a Gaussian process over points whose dimensions take few values each (levels).
//
// With k_d in (0, 1] the similarity of two values of dimension d, Matern 5/2 of their distance (Hamming for unordered
// ones), D dimensions and x_d centred coordinates in [-1/2, 1/2]:
//
//   bias + linear / D sum_d x_d x'_d + additive / D sum_d k_d + pairs / (D (D-1) / 2) sum_{d<e} k_d k_e + product
//   prod_d k_d
//
// The terms of low order (Duvenaud et al. 2011, arXiv 1112.4394) let few trials say something of the whole space: what
// a dimension does alone is learned from trials that differ in others too. Numbers are relative to a common variance.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ridgeline::search {

struct KernelShape {
  std::vector<double> lengths;  // one a dimension, in units of its range
  double bias = 3;
  double linear = 1;
  double additive = 1;
  double pairs = 0.3;
  double product = 0.1;
  double noise = 1e-3;  // variance of an observation, relative like the terms
};

// A dimension as the kernel sees it.
struct LevelAxis {
  std::vector<double> coordinates;  // of its levels
  bool unordered = false;
};

// Levels of many points, one array a dimension.
using LevelColumns = std::vector<std::vector<uint16_t>>;

class LevelKernel {
 public:
  LevelKernel(const std::vector<LevelAxis>& axes, const KernelShape& shape);

  // Covariance of two points given by their levels.
  double operator()(const uint16_t* left, const uint16_t* right) const;
  double variance(const uint16_t* point) const { return (*this)(point, point); }
  // Covariances of `point` with all of `columns`.
  void row(const uint16_t* point, const LevelColumns& columns, std::span<float> result) const;
  double noise() const { return noise_; }

 private:
  struct Axis {
    size_t levels;
    std::vector<float> similarity, product;  // [level, level]
  };
  double combine(double linear, double sum, double squares, double product) const;

  std::vector<Axis> axes_;
  double bias_, linear_, additive_, pairs_, product_, noise_;
};

}  // namespace ridgeline::search
