// Declares the channel maps of both forms of the logit.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/attention.h>

#include <array>
#include <vector>

// How the keys of a tuple and the query are combined channel by channel, for both forms of the
// logit.

namespace nsimplex::dense {

/// A bilinear map z(x, y) of channels, which are the last dimension; the other dimensions
/// broadcast. It is either elementwise, or the same sum of signed products of components in every
/// chunk of channels.
///
/// With its terms z_c += +-x_a y_b it is a trilinear form. The gradient of each operand is a
/// contraction of the other two.
class ChannelMap {
 public:
  static ChannelMap elementwise() { return {}; }

  /// x ^ y of a vector x of this grade and a vector y in R^size. The components are the subsets of
  /// the base in ascending order of their bit patterns.
  static ChannelMap exterior_product(int size, int grade);

  /// The cofactors u with u . k = det[y, x, k] for all k, where x has grade size - 2 and y is a
  /// vector.
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

  std::vector<Term> terms_;     ///< empty: elementwise
  std::array<int, 3> width_{};  ///< numbers of components of x, y, z in a chunk
};

/// The rows of the leading tuples (j_1 .. j_{N-1}): their contribution before the last axis. It is
/// the channelwise product, or the exterior product of chunks of N + 1 channels.
class LeadingRows {
 public:
  LeadingRows(Form form, int order);

  /// Axes of [B, H, n_m, C] -> [B, H, L, C'], L = n_1 .. n_{N-1}. For N = 1 there is one row of
  /// ones.
  at::Tensor of(const std::vector<at::Tensor>& axes) const;

  /// Gradients of axes 1 .. N-1 from that of the rows.
  std::vector<at::Tensor> backward(const std::vector<at::Tensor>& axes, at::Tensor grad) const;

  /// The rows combined with the query: u with u . k^(N) = form(q, k^(1), .., k^(N)).
  const ChannelMap& with_query() const { return with_query_; }

  /// Combines rows of the first `count` axes with one of the next axis.
  const ChannelMap& join(size_t count) const { return join_[count - 1]; }

  /// The number of channels of the row without axes, instead of `channels`: ones, one per chunk
  /// (product form: one).
  int64_t unit_channels(int64_t channels) const { return chunk_ ? channels / chunk_ : 1; }

 private:
  at::Tensor rows(const std::vector<at::Tensor>& axes, size_t count) const;

  int chunk_ = 0;                 ///< channels per chunk; 0: channelwise
  std::vector<ChannelMap> join_;  ///< join_[m - 1]: combines rows of m axes with the next axis
  ChannelMap with_query_;
};

}  // namespace nsimplex::dense
