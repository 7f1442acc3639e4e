#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/lift_fresh.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <nsimplex/equivariant_linear.h>

#include <vector>

// Tables that an operator composed of ATen calls brings along. While a graph is traced a fresh
// tensor has no memory to fill, so tables are made outside the trace and handed to it as constants.

namespace nsimplex::equivariant {

/// A float64 tensor of these values that is real whoever is tracing.
inline at::Tensor untraced_tensor(std::vector<double> values, at::IntArrayRef sizes) {
  const c10::impl::ExcludeDispatchKeyGuard untraced(
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot}));
  return at::from_blob(values.data(), sizes, at::kDouble).clone();
}

/// The table as an operand of whatever is being traced.
inline at::Tensor as_constant(const at::Tensor& table, at::Device device) {
  return at::lift_fresh(table).to(device);
}

using OptionalTensor = std::optional<at::Tensor>;

/// The arguments of the dense layer, options in their parsed form.
struct DenseCall {
  at::Tensor x, weight;
  OptionalTensor bias;
  TensorKind input, output;
  ClassSet classes = ClassSet::all;
  Pooling pooling = Pooling::mean;
  OptionalTensor node_counts;
  std::optional<c10::SymInt> nodes;
};

/// Refuses what does not fit.
void check(const DenseCall& call);

/// n.
c10::SymInt nodes_of(const DenseCall& call);

at::Tensor dense_linear(const DenseCall& call);

}  // namespace nsimplex::equivariant
