#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/attention.h>

#include <array>
#include <vector>

// How the key rows of a tuple and the query meet channel by channel, for both forms of the logit.

namespace nsimplex::dense {

/// A bilinear map z(x, y) of channels, the last dimension; the other dimensions broadcast. Either
/// elementwise, or the same sum of signed products of components in every chunk of channels.
///
/// With its terms z_c += +-x_a y_b it is a trilinear form, of which every operand's gradient is a
/// contraction with the other two.
class ChannelMap {
 public:
  static ChannelMap elementwise() { return {}; }

  /// x ^ y of a grade-vector x and a vector y in R^size: components are the subsets of the base,
  /// by increasing bit pattern.
  static ChannelMap exterior_product(int size, int grade);

  /// The cofactors u with u . k = det[y, x, k] for all k, x of grade size - 2, y a vector.
  static ChannelMap cofactors(int size);

  at::Tensor z(const at::Tensor& x, const at::Tensor& y) const { return contract(x, 0, y, 1, 2); }
  at::Tensor x(const at::Tensor& y, const at::Tensor& z) const { return contract(y, 1, z, 2, 0); }
  at::Tensor y(const at::Tensor& x, const at::Tensor& z) const { return contract(x, 0, z, 2, 1); }

 private:
  struct Term {
    std::array<int, 3> component;  ///< of x, y, z
    bool negative;
  };
  at::Tensor contract(const at::Tensor& left, int left_role, const at::Tensor& right,
                      int right_role, int result_role) const;

  std::vector<Term> terms_;     ///< none: elementwise
  std::array<int, 3> width_{};  ///< components of x, y, z in a chunk
};

/// Rows of the leading tuples (j_1 .. j_{N-1}): what their rows contribute before the last axis.
/// The channelwise product, or the exterior product of chunks of N + 1 channels.
class LeadingRows {
 public:
  LeadingRows(Form form, int order);

  /// Axes of [B, H, n_m, C] -> [B, H, L, C'], L = n_1 .. n_{N-1}; one row of ones for N = 1.
  at::Tensor of(const std::vector<at::Tensor>& axes) const;

  /// Gradients of axes 1 .. N-1, given that of the rows.
  std::vector<at::Tensor> backward(const std::vector<at::Tensor>& axes, at::Tensor grad) const;

  /// The rows with the query: u with u . k^(N) = form(q, k^(1), .., k^(N)).
  const ChannelMap& with_query() const { return with_query_; }

  /// Joins rows of the first `count` axes with one of the next.
  const ChannelMap& join(size_t count) const { return join_[count - 1]; }

  /// What the row of no axes holds in place of `channels`: ones, one a chunk (product form: one).
  int64_t unit_channels(int64_t channels) const { return chunk_ ? channels / chunk_ : 1; }

 private:
  at::Tensor rows(const std::vector<at::Tensor>& axes, size_t count) const;

  int chunk_ = 0;                 ///< channels of a chunk; 0: channelwise
  std::vector<ChannelMap> join_;  ///< join_[m - 1]: rows of m axes with axis m
  ChannelMap with_query_;
};

}  // namespace nsimplex::dense
