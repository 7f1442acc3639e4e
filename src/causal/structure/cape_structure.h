// Declares the model that the estimators `paper` and `paper_lowrank` train.

#pragma once

#include <ATen/ATen.h>
#include <ATen/core/Generator.h>
#include <nsimplex/causal_options.h>

#include <cstdint>
#include <vector>

#include "causal/structure/estimators.h"
#include "kernels/common/rounding.h"

namespace nsimplex::causal {

/// A network 1-64-1 with a ReLU, applied to every entry separately.
struct PointwiseNetwork {
  at::Tensor in, in_bias, out, out_bias;

  explicit PointwiseNetwork(const at::Generator& generator);
  at::Tensor operator()(const at::Tensor& x) const;
};

/// The parameters of fit_paper and the loss of a batch. A is a matrix of parameters for the
/// estimator `paper`, and U V^T with options.rank columns for `paper_lowrank`. Entries of A that
/// options.constraints exclude are 0 in both.
class PaperModel {
 public:
  PaperModel(int64_t features, const CausalFitOptions& options);

  const at::Generator& generator() const { return generator_; }
  /// A, or U and V. A and V start at 0.
  const std::vector<at::Tensor>& graph_unknowns() const { return unknowns_; }
  std::vector<at::Tensor> network_unknowns() const;

  at::Tensor graph() const;
  /// tr exp(A o A) - M. Its derivative 2 A o exp(A o A)^T needs no further exponential.
  static at::Tensor acyclicity(const at::Tensor& graph);
  at::Tensor loss(const at::Tensor& x, double rho, double alpha) const;

 private:
  bool sample_;
  at::Generator generator_;
  PointwiseNetwork encoder_, decoder_;
  std::vector<at::Tensor> unknowns_;
  at::Tensor one_, possible_, l1_;
};

/// Limits of the number of steps of the estimator `paper`, for progress bars.

inline constexpr int64_t kPaperBatch = 128;   ///< rows per batch
inline constexpr int64_t kPaperEpochs = 100;  ///< per pair of alpha and rho
inline constexpr int64_t kPaperLoops = 20;    ///< largest number of such pairs

/// Batches per epoch for a table with this number of rows.
constexpr int64_t paper_batches(int64_t rows) { return ceil_div(rows, kPaperBatch); }

/// Step I of CAPE as in its paper, with LibTorch's autograd:
///
///     Z = f(X) (I - A),    X^ = f^-1(Z (I - A)^-1),    h(A) = tr exp(A o A) - M
///     (1/B) sum_i (|x_i - x^_i|^2 + |z_i|^2) / 2 + sparsity |A|_1 + rho/2 h^2 + alpha h
///
/// over batches of B = 128. f and f^-1 are ReLU networks 1-64-1 that all columns share. The
/// optimiser is AdamW at 3e-3 without decay of A, which starts at 0. It runs 100 epochs per pair of
/// alpha and rho, with at most 20 pairs. Then alpha grows by rho h, and rho tenfold if h > h_last /
/// 4. The fit ends with h < 1e-8. With options.sample, Z is drawn around f(X) (I - A); its variance
/// is 1, because the paper does not give one. sparsity: 0.01.
///
/// f alone has no scale. Half of f with an f^-1 of twice the slope halves |z| at no cost, so that
/// any l1 norm would end at A = 0. Therefore f(X) is centred in each batch and scaled to the mean
/// square of X.
///
/// For the estimator `paper_lowrank`, A = U V^T with min(options.rank, M) columns. The diagonal and
/// the edges that the constraints exclude are removed. It has 2 M r parameters instead of M^2. V
/// starts at 0.
///
/// Constraints are as in estimators.h. Complexity: O(n (M^2 + 64 M) + M^3) per epoch, with M^3 per
/// batch for both estimators. A o A has the rank r (r + 1) / 2 and not r, so U and V do not make
/// its exponential cheaper. Equal seeds give equal answers with the same build.
///
/// Source: Xu, Du, Liu, Yu, Sun, "Causality-induced positional encoding", NeurIPS 2025, equations
/// 5-10, sections F.4 and G.4.
Structure fit_paper(TableView table, const CausalFitOptions& options);

}  // namespace nsimplex::causal
