// Declares plans of equivariant sums as tensors, and their checks.

#pragma once

#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "equivariant/linear/equivariant_sums_call.h"
#include "graph/tuple_lists.h"

namespace nsimplex {

struct TupleBatch;

namespace equivariant {

template <class T>
at::Tensor to_tensor(const std::vector<T>& values) {
  const at::Tensor tensor = at::empty({std::ssize(values)}, c10::CppTypeToScalarType<T>::value);
  std::copy(values.begin(), values.end(), tensor.template mutable_data_ptr<T>());
  return tensor;
}

/// The tensors of a plan in the order of PlanTensor.
std::vector<at::Tensor> tensors_of(const SumPlan& plan);

/// Rejects lists over different nodes, and tuples with a repeated node if the kind excludes them.
void check_same_nodes(const TupleBatch& input, const TupleBatch& output, const char* name);
void check_loops(const graph::TupleView& tuples, const TensorKind& kind, const char* list,
                 const char* name);

}  // namespace equivariant
}  // namespace nsimplex

namespace nsimplex::equivariant {

/// Rejects a plan whose numbers would lead a kernel out of its arrays: a plan that
/// equivariant_plan() did not make, or that was changed since. It reads the values, which must be
/// on the CPU, in one pass, O(bytes of the plan). check_sums() or check_transposed() must have
/// checked the tensors.
void check_plan_values(const SumsCall& call, const char* name);

}  // namespace nsimplex::equivariant
