// Tensors in, checked batches out.

#include <ATen/ATen.h>
#include <nsimplex/graph.h>

#include "graph/tuple_faults.h"
#include "graph/view.h"

namespace nsimplex {

using at::Tensor;

int64_t TupleBatch::nodes() const { return node_offsets[-1].item<int64_t>(); }

void check_tuples(const TupleBatch& batch, const char* name) {
  graph::check_numbers(name, "tuples", batch.tuples, 2, "[m, k]");
  graph::check_numbers(name, "tuple_offsets", batch.tuple_offsets, 1, "[B + 1]");
  graph::check_numbers(name, "node_offsets", batch.node_offsets, 1, "[B + 1]");
  const Tensor tuples = batch.tuples.contiguous(), rows = batch.tuple_offsets.contiguous(),
               nodes = batch.node_offsets.contiguous();
  const auto fault = graph::find_tuple_fault({graph::view_rows(tuples), graph::view_numbers(rows),
                                              graph::view_numbers(nodes), batch.symmetry});
  TORCH_CHECK_VALUE(!fault, "[", name, "] ", *fault);
}

TupleBatch tuple_batch(const Tensor& tuples, const Tensor& tuple_offsets,
                       const Tensor& node_offsets, Symmetry symmetry) {
  return graph::CheckedBatch({tuples, tuple_offsets, node_offsets, symmetry}, "tuple_batch")
      .batch();
}

TupleBatch tuple_batch(const Tensor& tuples, int64_t nodes, Symmetry symmetry) {
  TORCH_CHECK_VALUE(nodes >= 0, "[tuple_batch] nodes: expected at least 0, got ", nodes);
  graph::check_numbers("tuple_batch", "tuples", tuples, 2, "[m, k]");
  return tuple_batch(tuples, at::tensor({int64_t{0}, tuples.size(0)}),
                     at::tensor({int64_t{0}, nodes}), symmetry);
}

void check_features(const TupleBatch& batch, const Tensor& features, const char* name) {
  TORCH_CHECK_TYPE(features.is_floating_point(), "[", name,
                   "] features: expected a floating point dtype, got ", features.scalar_type());
  TORCH_CHECK_VALUE(features.dim() == 2 && features.size(0) == batch.size(), "[", name,
                    "] features: expected shape [", batch.size(), ", d], got ", features.sizes());
  graph::check_finite(name, "features", features);
}

}  // namespace nsimplex
