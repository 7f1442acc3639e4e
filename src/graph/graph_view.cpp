// Turns tensors into checked batches.

#include "graph/graph_view.h"

#include <ATen/ATen.h>
#include <nsimplex/graph.h>

#include "graph/tuple_lists.h"
#include "support/plain_tensor.h"
#include "support/transforms.h"

namespace nsimplex::graph {

using at::Tensor;

std::span<const int64_t> view_numbers(const Tensor& tensor) {
  return {tensor.const_data_ptr<int64_t>(), static_cast<size_t>(tensor.numel())};
}

Rows view_rows(const Tensor& matrix) {
  return {matrix.const_data_ptr<int64_t>(), matrix.size(0), matrix.size(1)};
}

ContiguousBatch::ContiguousBatch(const TupleBatch& batch)
    : batch_{batch.tuples.contiguous(), batch.tuple_offsets.contiguous(),
             batch.node_offsets.contiguous(), batch.symmetry} {}

TupleView ContiguousBatch::view() const {
  return {view_rows(batch_.tuples), view_numbers(batch_.tuple_offsets),
          view_numbers(batch_.node_offsets), batch_.symmetry};
}

CheckedBatch::CheckedBatch(const TupleBatch& batch, const char* name) : ContiguousBatch(batch) {
  check_tuples(this->batch(), name);
}

Tensor to_tensor(std::vector<int64_t> numbers) {
  if (numbers.empty()) return at::empty({0}, at::kLong);
  auto* owner = new std::vector<int64_t>(std::move(numbers));
  return at::from_blob(
      owner->data(), {static_cast<int64_t>(owner->size())}, [owner](void*) { delete owner; },
      at::TensorOptions(at::kLong));
}

DerivedTuples to_batch(TupleList list, const Tensor& node_offsets, Symmetry symmetry) {
  const int64_t count = list.count(), width = list.width;
  std::vector<int64_t> offsets = offsets_of_sorted(list, view_numbers(node_offsets));
  return {{to_tensor(std::move(list.values)).view({count, width}), to_tensor(std::move(offsets)),
           node_offsets, symmetry},
          to_tensor(std::move(list.origin))};
}

void check_numbers(const char* name, const char* argument, const Tensor& tensor, int64_t dims,
                   const char* shape, bool read) {
  TORCH_CHECK_TYPE(tensor.scalar_type() == at::kLong, "[", name, "] ", argument,
                   ": expected int64, got ", tensor.scalar_type());
  TORCH_CHECK_VALUE(!tensor.is_nested() && tensor.layout() == at::kStrided, "[", name, "] ",
                    argument, ": expected a dense tensor, got ",
                    tensor.is_nested() ? "a nested one" : c10::str("layout ", tensor.layout()));
  TORCH_CHECK_VALUE(tensor.dim() == dims, "[", name, "] ", argument, ": expected shape ", shape,
                    ", got ", tensor.sym_sizes());
  TORCH_CHECK_VALUE(tensor.is_cpu(), "[", name, "] ", argument,
                    ": expected a tensor on the CPU, got one on ", tensor.device());
  TORCH_CHECK_VALUE(!read || has_numbers(tensor), "[", name, "] ", argument,
                    ": expected a tensor with numbers, got one of a graph that torch traces; make "
                    "graphs outside of compiled code");
}

Tensor checked_offsets(const char* name, const Tensor& node_offsets, int64_t n) {
  check_numbers(name, "node_offsets", node_offsets, 1, "[B + 1]");
  Tensor offsets = node_offsets.contiguous();
  const auto numbers = view_numbers(offsets);
  const auto fault = find_offset_fault("node_offsets", numbers);
  TORCH_CHECK_VALUE(!fault, "[", name, "] ", *fault);
  TORCH_CHECK_VALUE(numbers.back() == n, "[", name,
                    "] node_offsets: expected the number of nodes, ", n, ", last, got ",
                    numbers.back());
  return offsets;
}

void check_finite(const char* name, const char* argument, const Tensor& matrix) {
  const Tensor bad = matrix.isfinite().logical_not_();
  if (!bad.any().item<bool>()) return;
  const Tensor first = bad.nonzero()[0];
  const int64_t row = first[0].item<int64_t>(), column = first[1].item<int64_t>();
  TORCH_CHECK_VALUE(false, "[", name, "] ", argument, ": expected finite numbers, got ",
                    matrix[row][column].item<double>(), " in row ", row, ", column ", column);
}

}  // namespace nsimplex::graph

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
  TORCH_CHECK_TYPE(is_floating(features), "[", name,
                   "] features: expected a floating point dtype, got ", features.scalar_type());
  TORCH_CHECK_VALUE(features.dim() == 2 && features.size(0) == batch.size(), "[", name,
                    "] features: expected shape [", batch.size(), ", d], got ", features.sizes());
  graph::check_finite(name, "features", features);
}

}  // namespace nsimplex
