// The arguments of the dense equivariant layer, and constant tables for traced graphs.

#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/lift_fresh.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <nsimplex/equivariant_linear.h>

#include <vector>

// Constant tables of an operator that consists of ATen calls. While a graph is traced, a new tensor
// has no memory to fill. So tables are made outside the trace and passed to it as constants.

namespace nsimplex::equivariant {

/// A float64 tensor of these values with real memory, also during tracing.
inline at::Tensor untraced_tensor(std::vector<double> values, at::IntArrayRef sizes) {
  const c10::impl::ExcludeDispatchKeyGuard untraced(
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot}));
  return at::from_blob(values.data(), sizes, at::kDouble).clone();
}

/// The table as an operand of the current trace.
inline at::Tensor as_constant(const at::Tensor& table, at::Device device) {
  return at::lift_fresh(table).to(device);
}

using OptionalTensor = std::optional<at::Tensor>;

/// The arguments of the dense layer, with parsed options.
struct DenseCall {
  at::Tensor x, weight;
  OptionalTensor bias;
  TensorKind input, output;
  ClassSet classes = ClassSet::all;
  Pooling pooling = Pooling::mean;
  OptionalTensor node_counts;
  std::optional<c10::SymInt> nodes;
};

/// Rejects arguments that do not fit.
void check(const DenseCall& call);

/// n.
c10::SymInt nodes_of(const DenseCall& call);

at::Tensor dense_linear(const DenseCall& call);

}  // namespace nsimplex::equivariant
