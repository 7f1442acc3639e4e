#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/export.h>
#include <nsimplex/symmetry.h>

/// Sets, graphs and hypergraphs as lists of tuples of nodes, many in one batch without padding.
///
/// Everything here prepares data: plain functions on the CPU, int64 throughout, without gradients.
/// Errors are c10::ValueError or c10::TypeError with one line that names the argument, what was
/// expected and what came.
namespace nsimplex {

/// B hypergraphs, each a list of k-tuples of its nodes, one after the other.
///
/// Nodes are numbered through the whole batch: graph g owns node_offsets[g] ..
/// node_offsets[g + 1] - 1, and its tuples are the rows tuple_offsets[g] .. tuple_offsets[g + 1] -
/// 1. Features are tensors of their own, [m, d], in the order of these rows. What belongs to a node
/// lives on the diagonal: for k = 2 on the loop (i, i). k = 1 is a set of points; for k = 0 every
/// graph has at most one row, the empty tuple.
struct TupleBatch {
  at::Tensor tuples;         ///< int64 [m, k]
  at::Tensor tuple_offsets;  ///< int64 [B + 1], from 0 to m
  at::Tensor node_offsets;   ///< int64 [B + 1], from 0 to the number of nodes
  Symmetry symmetry = Symmetry::ordered;

  int64_t size() const { return tuples.size(0); }               ///< m
  int64_t order() const { return tuples.size(1); }              ///< k
  int64_t graphs() const { return tuple_offsets.size(0) - 1; }  ///< B
  NSIMPLEX_API int64_t nodes() const;                           ///< of the whole batch
};

/// A batch whose parts have been checked, contiguous. Refused are: other dtypes, shapes or devices;
/// offsets that do not rise from 0 to the end; a node outside its graph; a tuple that comes twice;
/// equal entries when loop_free; falling entries when undirected.
///
/// Complexity: O(m k), and where the rows do not ascend, O(m k log(nodes)) for sorting them.
NSIMPLEX_API TupleBatch tuple_batch(const at::Tensor& tuples, const at::Tensor& tuple_offsets,
                                    const at::Tensor& node_offsets,
                                    Symmetry symmetry = Symmetry::ordered);

/// One graph on nodes 0 .. nodes - 1.
NSIMPLEX_API TupleBatch tuple_batch(const at::Tensor& tuples, int64_t nodes,
                                    Symmetry symmetry = Symmetry::ordered);

/// Refuses what tuple_batch() refuses, of a batch put together by hand. `name` stands in the
/// message, as in "[name] tuples: expected ..".
NSIMPLEX_API void check_tuples(const TupleBatch& batch, const char* name = "tuple_batch");

/// Refuses features of these tuples that are not floating point [m, d], or hold a NaN or infinity.
NSIMPLEX_API void check_features(const TupleBatch& batch, const at::Tensor& features,
                                 const char* name = "features");

}  // namespace nsimplex
