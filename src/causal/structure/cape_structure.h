#pragma once

#include <ATen/ATen.h>
#include <ATen/core/Generator.h>
#include <nsimplex/causal_options.h>

#include <cstdint>
#include <vector>

#include "causal/structure/estimators.h"
#include "kernels/common/rounding.h"

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

/// How long the estimator `paper` goes on, for those who count its steps without running it.

inline constexpr int64_t kPaperBatch = 128;   ///< rows of a batch
inline constexpr int64_t kPaperEpochs = 100;  ///< for each value of alpha and rho
inline constexpr int64_t kPaperLoops = 20;    ///< such values at most

/// Batches of an epoch over a table of so many rows.
constexpr int64_t paper_batches(int64_t rows) { return ceil_div(rows, kPaperBatch); }

/// Step I of CAPE as its paper has it, on LibTorch's autograd:
///
///     Z = f(X) (I - A),    X^ = f^-1(Z (I - A)^-1),    h(A) = tr exp(A o A) - M
///     (1/B) sum_i (|x_i - x^_i|^2 + |z_i|^2) / 2 + sparsity |A|_1 + rho/2 h^2 + alpha h
///
/// over batches of B = 128. f and f^-1 are ReLU networks 1-64-1 that all columns share. AdamW at
/// 3e-3 (no decay of A, which starts at 0), 100 epochs for each of at most 20 values of alpha and
/// rho: alpha grows by rho h, rho tenfold where h > h_last / 4; h < 1e-8 ends it. With
/// options.sample Z is drawn around f(X) (I - A), whose unit variance the paper leaves open, too.
/// sparsity: 0.01.
///
/// f alone has no scale: halved, with f^-1 of twice the slope, it halves |z| for nothing, so that
/// any l1 norm would end at A = 0. So f(X) is centred and scaled in each batch to the mean square
/// of X.
///
/// For the estimator `paper_lowrank` A = U V^T with min(options.rank, M) columns, without its
/// diagonal and what the constraints exclude: 2 M r unknowns in the place of M^2. V starts at 0.
///
/// Constraints as in estimators.h. Complexity: O(n (M^2 + 64 M) + M^3) an epoch, M^3 for every
/// batch, of both: A o A has the rank r (r + 1) / 2 and not r, so that its exponential gains
/// nothing from U and V. Of equal seed and build the answer is the same.
///
/// Source: Xu, Du, Liu, Yu, Sun, "Causality-induced positional encoding", NeurIPS 2025, equations
/// 5-10, sections F.4 and G.4.
Structure fit_paper(TableView table, const CausalFitOptions& options);

}  // namespace nsimplex::causal
