// Declares one head in the setting of the theorems on collapse, and the parts of the bound.

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
/// connection. float64. The theorems have no output.
using PureHead = CollapseHead;

/// d, the width of the keys.
inline int64_t head_dim_of(const PureHead& head) { return head.keys.front().size(1); }

/// d^-1/2.
inline double logit_scale_of(const PureHead& head) {
  return 1 / std::sqrt(static_cast<double>(head_dim_of(head)));
}

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

/// The factors of the bounds, for one head and one X whose smallest residual has this offset.
struct CollapseFactors {
  double gamma = 1, logit_range = 0;
  double largest_key = 0, largest_value = 0;  ///< ||W||
  double output = 1;                          ///< ||W|| of the output
};

CollapseFactors factors_of(const PureHead& head, const at::Tensor& tokens,
                           const at::Tensor& offset);

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
