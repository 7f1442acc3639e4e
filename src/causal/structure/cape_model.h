#pragma once

#include <ATen/ATen.h>
#include <ATen/core/Generator.h>
#include <nsimplex/causal_options.h>

#include <vector>

namespace nsimplex::causal {

/// 1-64-1 with a ReLU between, of every entry by itself.
struct PointwiseNetwork {
  at::Tensor in, in_bias, out, out_bias;

  explicit PointwiseNetwork(const at::Generator& generator);
  at::Tensor operator()(const at::Tensor& x) const;
};

/// The unknowns of fit_paper and the loss of a batch. A is a matrix of unknowns for the estimator
/// `paper`, and U V^T with the columns of options.rank for `paper_lowrank`. Entries of A that
/// options.constraints exclude are 0 in both.
class PaperModel {
 public:
  PaperModel(int64_t features, const CausalFitOptions& options);

  const at::Generator& generator() const { return generator_; }
  /// A, or U and V. A, and V, start at 0.
  const std::vector<at::Tensor>& graph_unknowns() const { return unknowns_; }
  std::vector<at::Tensor> network_unknowns() const;

  at::Tensor graph() const;
  /// tr exp(A o A) - M. Its derivative is 2 A o exp(A o A)^T, which costs nothing beside the value.
  static at::Tensor acyclicity(const at::Tensor& graph);
  at::Tensor loss(const at::Tensor& x, double rho, double alpha) const;

 private:
  bool sample_;
  at::Generator generator_;
  PointwiseNetwork encoder_, decoder_;
  std::vector<at::Tensor> unknowns_;
  at::Tensor one_, possible_, l1_;
};

}  // namespace nsimplex::causal
