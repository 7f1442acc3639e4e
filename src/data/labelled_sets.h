#pragma once

#include <ATen/core/Tensor.h>

#include <string>

/// Sets of points that fall into parts, for models that predict which points belong together.
namespace nsimplex::data {

/// B sets one after the other, as a TupleBatch has its nodes. The partition as a graph is
/// label_cliques(labels, node_offsets).
struct LabelledSets {
  at::Tensor points;        ///< fp32 [n, d]
  at::Tensor node_offsets;  ///< int64 [B + 1], from 0 to n
  at::Tensor labels;        ///< int64 [n]: points of a set with one label are one part
  at::Tensor kinds;         ///< int64 [B]: what sets are told apart by in a report; [0] for none

  int64_t size() const { return node_offsets.size(0) - 1; }  ///< B
};

/// Sets from an npz with the arrays
///
///     points   [n, d]   numbers, finite
///     offsets  [B + 1]  integers: set b has the points offsets[b] to offsets[b + 1] - 1
///     labels   [n]      integers of any size
///     kinds    [B]      integers from 0 on; optional
///
/// Throws InputError, of one line with the file and the array, where one is missing, does not fit
/// to the others or holds something else.
LabelledSets read_labelled_sets(const std::string& path);

/// The sets of these numbers, in this order.
LabelledSets select_sets(const LabelledSets& sets, const at::Tensor& numbers);

}  // namespace nsimplex::data
