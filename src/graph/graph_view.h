// Declares conversions between tensors and the Torch-free types of this folder.

#pragma once

#include <nsimplex/graph.h>
#include <nsimplex/symmetry.h>

#include <string_view>
#include <vector>

#include "graph/tuple_lists.h"
#include "support/names.h"

namespace nsimplex {

template <>
inline constexpr Names<Symmetry, 3> kNames<Symmetry>{{{"ordered", Symmetry::ordered},
                                                      {"loop_free", Symmetry::loop_free},
                                                      {"undirected", Symmetry::undirected}}};

}  // namespace nsimplex

namespace nsimplex::graph {

/// Parses "ordered", "loop_free" or "undirected". Anything else is a c10::ValueError that names
/// `function`.
Symmetry parse_symmetry(std::string_view name, const char* function);

}  // namespace nsimplex::graph

// Conversions between tensors and the types of this folder's Torch-free code.

namespace nsimplex::graph {

/// Views of contiguous int64 tensors; they live as long as the tensors.
std::span<const int64_t> view_numbers(const at::Tensor& tensor);
Rows view_rows(const at::Tensor& matrix);

/// A batch as contiguous tensors and as a view of them.
class ContiguousBatch {
 public:
  explicit ContiguousBatch(const TupleBatch& batch);

  const TupleBatch& batch() const { return batch_; }
  TupleView view() const;

 private:
  TupleBatch batch_;
};

/// A batch that check_tuples() has checked, under this name.
class CheckedBatch : public ContiguousBatch {
 public:
  CheckedBatch(const TupleBatch& batch, const char* name);
};

/// Moves the numbers into an int64 tensor.
at::Tensor to_tensor(std::vector<int64_t> numbers);

/// Sorted rows over the nodes of `node_offsets` as a batch.
DerivedTuples to_batch(TupleList list, const at::Tensor& node_offsets, Symmetry symmetry);

/// Refuses tensors that are not int64 on the CPU with `dims` dimensions and, if they will be read,
/// those of a traced graph.
void check_numbers(const char* name, const char* argument, const at::Tensor& tensor, int64_t dims,
                   const char* shape, bool read = true);

/// The offsets of graphs with n nodes, contiguous. Refuses offsets that do not rise from 0 to n.
at::Tensor checked_offsets(const char* name, const at::Tensor& node_offsets, int64_t n);

/// Refuses a matrix of floating point numbers that holds a NaN or infinity.
void check_finite(const char* name, const char* argument, const at::Tensor& matrix);

}  // namespace nsimplex::graph
