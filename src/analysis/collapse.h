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
/// the same tokens, with product form and values, softmax, logit scale d^-1/2 and no skip
/// connection. float64.
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

/// The largest ||W|| of some weights, where ||.|| is composite_norm().
double largest_norm(const std::vector<at::Tensor>& weights);

/// Whether a residual of tokens with this norm is only rounding or too small for float64: below
/// 1e-13 of the norm, or a norm below 1e-290 or not finite.
bool at_floor(double residual, double norm);

/// The tuples that a mask admits, in the form of sparse_attention().
struct TupleMask {
  at::Tensor indices;  ///< int64 [m, N]
  at::Tensor offsets;  ///< int64 [1, 1, n + 1]
};

TupleMask tuple_mask(const MaskRows& rows);

/// Applies the head to tokens [n, channels], under a mask, or with all tuples and optionally
/// another form, reducer or normaliser. Weights and tokens have one dtype, which may be any.
at::Tensor apply(const PureHead& head, const at::Tensor& tokens,
                 const std::optional<TupleMask>& mask = std::nullopt,
                 const AttentionOptions& options = {});

/// Logits of all tuples without their scale, split by the number of factors that are residuals
/// R = X - 1 u^T: none (a constant, omitted), one, and two or more. [n, n^N] each.
struct SplitLogits {
  at::Tensor first, remainder;
};

SplitLogits split_logits(const PureHead& head, const at::Tensor& tokens, const at::Tensor& offset);

/// nsimplex::collapse_bound() of a head.
CollapseBound collapse_bound(const PureHead& head, const at::Tensor& tokens);

/// Corollary 3.2, for L layers of H heads whose outputs are summed:
///
///     ||res(X^(L))|| <= ||res(X)||^(3^L) (4 gamma H / sqrt(d) beta (max_t ||X^(t)||)^(2(N-1)))
///                       ^((3^L - 1) / 2)
///
/// where beta is defined like beta', and both beta and gamma take maxima over layers and heads.
/// Heads have no output projection. Both sides are natural logarithms.
struct StackBound {
  double log_residual = 0;  ///< of the left side
  double log_bound = 0;
  double logit_range = 0;  ///< the largest of all layers and heads
  bool floor = false;      ///< whether at_floor() holds for some layer's tokens

  bool assumption_holds() const { return logit_range <= CollapseBound::kLargestRange; }
};

/// layers: each a list of heads of one order and width. Each costs as much as collapse_bound().
StackBound stack_bound(const std::vector<std::vector<PureHead>>& layers, const at::Tensor& tokens);

/// The margins of the proof's steps, for one head and one X.
struct CollapseLemmas {
  double additive = 0;          ///< A.1: largest |first - sum_i e^(i)| over the largest entry
  double row_constant = 0;      ///< A.2: largest difference of two rows over the largest entry
  double below = 0, above = 0;  ///< A.3: smallest P / ((1 - D) P~) and (1 + 2D) P~ / P
  double logit_range = 0;       ///< as in the bound: the largest entry of D
};

CollapseLemmas collapse_lemmas(const PureHead& head, const at::Tensor& tokens,
                               const at::Tensor& offset);

}  // namespace nsimplex::analysis
