// Tensors in, checked batches out.

#include <ATen/ATen.h>
#include <nsimplex/graph.h>

#include "graph/tuple_faults.h"
#include "graph/view.h"

namespace nsimplex {

using at::Tensor;

namespace graph {
namespace {

void check_int64(const char* name, const char* argument, const Tensor& tensor, int64_t dims,
                 const char* shape) {
  TORCH_CHECK_TYPE(tensor.scalar_type() == at::kLong, "[", name, "] ", argument,
                   ": expected int64, got ", tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.dim() == dims, "[", name, "] ", argument, ": expected shape ", shape,
                    ", got ", tensor.sizes());
  TORCH_CHECK_VALUE(tensor.is_cpu(), "[", name, "] ", argument,
                    ": expected a tensor on the CPU, got one on ", tensor.device());
}

std::span<const int64_t> numbers(const Tensor& tensor) {
  return {tensor.const_data_ptr<int64_t>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

Rows view_rows(const Tensor& matrix) {
  return {matrix.const_data_ptr<int64_t>(), matrix.size(0), matrix.size(1)};
}

TupleView view(const TupleBatch& batch) {
  return {view_rows(batch.tuples), numbers(batch.tuple_offsets), numbers(batch.node_offsets),
          batch.symmetry};
}

}  // namespace graph

int64_t TupleBatch::nodes() const { return node_offsets[-1].item<int64_t>(); }

void check_tuples(const TupleBatch& batch, const char* name) {
  graph::check_int64(name, "tuples", batch.tuples, 2, "[m, k]");
  graph::check_int64(name, "tuple_offsets", batch.tuple_offsets, 1, "[B + 1]");
  graph::check_int64(name, "node_offsets", batch.node_offsets, 1, "[B + 1]");
  const TupleBatch contiguous{batch.tuples.contiguous(), batch.tuple_offsets.contiguous(),
                              batch.node_offsets.contiguous(), batch.symmetry};
  const auto fault = graph::find_tuple_fault(graph::view(contiguous));
  TORCH_CHECK_VALUE(!fault, "[", name, "] ", *fault);
}

TupleBatch tuple_batch(const Tensor& tuples, const Tensor& tuple_offsets,
                       const Tensor& node_offsets, Symmetry symmetry) {
  TupleBatch batch{tuples.contiguous(), tuple_offsets.contiguous(), node_offsets.contiguous(),
                   symmetry};
  check_tuples(batch);
  return batch;
}

TupleBatch tuple_batch(const Tensor& tuples, int64_t nodes, Symmetry symmetry) {
  TORCH_CHECK_VALUE(nodes >= 0, "[tuple_batch] nodes: expected at least 0, got ", nodes);
  graph::check_int64("tuple_batch", "tuples", tuples, 2, "[m, k]");
  return tuple_batch(tuples, at::tensor({int64_t{0}, tuples.size(0)}),
                     at::tensor({int64_t{0}, nodes}), symmetry);
}

void check_features(const TupleBatch& batch, const Tensor& features, const char* name) {
  TORCH_CHECK_TYPE(features.is_floating_point(), "[", name,
                   "] features: expected a floating point dtype, got ", features.scalar_type());
  TORCH_CHECK_VALUE(features.dim() == 2 && features.size(0) == batch.size(), "[", name,
                    "] features: expected shape [", batch.size(), ", d], got ", features.sizes());
  const Tensor bad = features.isfinite().logical_not_();
  if (!bad.any().item<bool>()) return;
  const Tensor first = bad.nonzero()[0];
  const int64_t row = first[0].item<int64_t>(), column = first[1].item<int64_t>();
  TORCH_CHECK_VALUE(false, "[", name, "] features: expected finite numbers, got ",
                    features[row][column].item<double>(), " in row ", row, ", column ", column);
}

}  // namespace nsimplex
