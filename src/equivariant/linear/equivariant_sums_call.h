// The arguments of the operators of class sums, and the order of a plan's tensors.

#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "equivariant/linear/sum_plan.h"
#include "support/flat_call.h"

namespace nsimplex::equivariant {

/// The tensors of a plan, in the order in which operators take them: the arrays of SumPlan, in
/// int32 except the last two.
enum PlanTensor : size_t {
  kGroupOffsets,
  kGroupRows,
  kRowOffsets,
  kRowSources,
  kLookups,
  kCounts,
  kSourceOffsets,
  kSourceLookups,
  kTerms,          // [terms, 3]
  kOutputPlaces,   // int64 [m']: the place of an output row among the parts
  kWeightClasses,  // int64: the classes of all parts
  kPlanTensors
};

/// The sizes of the parts in the form that operators take, and the inverse.
std::vector<int64_t> flatten(const std::vector<PatternPart>& parts);
std::vector<PatternPart> unflatten_parts(at::IntArrayRef flat);

/// The arguments of the sums of all classes, and of their transpose.
struct SumsCall {
  const at::Tensor& values;  ///< x [m, d]; for the transpose, the gradient of the sums
  at::TensorList plan;
  at::IntArrayRef parts;
  bool mean;

  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    return predicate(values) || any_tensor_of(std::tie(plan), predicate);
  }

  c10::SymInt input_rows() const { return plan[kRowOffsets].sym_size(0) - 1; }
  c10::SymInt sums() const { return plan[kCounts].sym_size(0); }
};

/// Adapter from the dispatcher's flat argument list to a function of a SumsCall.
template <at::Tensor (*function)(const SumsCall&)>
at::Tensor flat_sums(const at::Tensor& values, at::TensorList plan, at::IntArrayRef parts,
                     bool mean) {
  return function({values, plan, parts, mean});
}

/// All sums [rows x classes of every part, d] of x [m, d], part by part.
at::Tensor dispatch_sums(const SumsCall& call);
/// The gradient [m, d] of x from that of the sums.
at::Tensor dispatch_transposed(const SumsCall& call);

/// The same by ATen calls.
at::Tensor reference_sums(const SumsCall& call);
at::Tensor reference_transposed(const SumsCall& call);

/// Rejects arguments that do not fit the plan.
void check_sums(const SumsCall& call);
void check_transposed(const SumsCall& call);

}  // namespace nsimplex::equivariant
