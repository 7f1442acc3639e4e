#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/equivariant.h>

namespace nsimplex::equivariant {

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
