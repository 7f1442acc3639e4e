#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/analysis.h>
#include <nsimplex/attention.h>

#include <cmath>
#include <optional>
#include <vector>

#include "analysis/mask_hypergraph.h"

namespace nsimplex::analysis {

/// One head in the setting of the theorems on collapse: N-simplicial attention of projections of
/// the same tokens, product form and values, softmax, logit scale d^-1/2, no skip. float64.
struct PureHead {
  std::vector<at::Tensor> keys;    ///< W_K^(0) (the queries') .. W_K^(N), each [channels, d]
  std::vector<at::Tensor> values;  ///< W_V^(1) .. W_V^(N), each [channels, channels]

  /// A slice of an output projection, applied to the product; the theorems have none.
  std::optional<at::Tensor> output = std::nullopt;

  int64_t order() const { return static_cast<int64_t>(values.size()); }
  int64_t head_dim() const { return keys.front().size(1); }
  double logit_scale() const { return 1 / std::sqrt(static_cast<double>(head_dim())); }
};

/// Normal weights of variance 1 / channels from torch's generator, d = channels.
PureHead random_head(int64_t order, int64_t channels);

/// max ||W|| of some weights, ||.|| being composite_norm().
double largest_norm(const std::vector<at::Tensor>& weights);

/// Whether a residual of tokens of this norm is rounding, or too little for float64: below 1e-13 of
/// the norm, or a norm below 1e-290 or not finite.
bool at_floor(double residual, double norm);

/// The tuples that a mask admits, as sparse_attention() takes them.
struct TupleMask {
  at::Tensor indices;  ///< int64 [m, N]
  at::Tensor offsets;  ///< int64 [1, 1, n + 1]
};

TupleMask tuple_mask(const MaskRows& rows);

/// What the head makes of tokens [n, channels], under a mask or with all tuples, where options may
/// ask for another form, reducer or normaliser. Weights and tokens may be of any one dtype.
at::Tensor apply(const PureHead& head, const at::Tensor& tokens,
                 const std::optional<TupleMask>& mask = std::nullopt,
                 const AttentionOptions& options = {});

/// Logits of all tuples without their scale, split by how many factors are residuals R = X - 1 u^T:
/// none (a constant, left out), one, and two or more. [n, n^N] each.
struct SplitLogits {
  at::Tensor first, remainder;
};

SplitLogits split_logits(const PureHead& head, const at::Tensor& tokens, const at::Tensor& offset);

/// nsimplex::collapse_bound() of a head.
CollapseBound collapse_bound(const PureHead& head, const at::Tensor& tokens);

/// Corollary 3.2: L layers of H heads, whose outputs are summed,
///
///     ||res(X^(L))|| <= ||res(X)||^(3^L) (4 gamma H / sqrt(d) beta (max_t ||X^(t)||)^(2(N-1)))
///                       ^((3^L - 1) / 2)
///
/// beta as beta' and gamma with maxima over layers and heads; heads without an output. Both sides
/// as natural logarithms.
struct StackBound {
  double log_residual = 0;  ///< of the left side
  double log_bound = 0;
  double logit_range = 0;  ///< the largest of all layers and heads
  bool floor = false;      ///< whether some layer's tokens are at_floor()

  bool assumption_holds() const { return logit_range <= CollapseBound::kLargestRange; }
};

/// layers: each a list of heads of one order and width. Cost as collapse_bound(), for each.
StackBound stack_bound(const std::vector<std::vector<PureHead>>& layers, const at::Tensor& tokens);

/// How far the proof's steps are from failing, for one head and one X.
struct CollapseLemmas {
  double additive = 0;          ///< A.1: largest |first - sum_i e^(i)| over the largest entry
  double row_constant = 0;      ///< A.2: largest difference of two rows over the largest entry
  double below = 0, above = 0;  ///< A.3: smallest P / ((1 - D) P~) and (1 + 2D) P~ / P
  double logit_range = 0;       ///< as of the bound: the largest entry of D
};

CollapseLemmas collapse_lemmas(const PureHead& head, const at::Tensor& tokens,
                               const at::Tensor& offset);

}  // namespace nsimplex::analysis
