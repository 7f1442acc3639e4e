// Declares attention with added all-ones keys.

#pragma once

#include "attention/common/attention_call.h"

// Augmented axes. Such an axis has one more key, a row of ones, which every query sees for all
// windows, masks and lengths. With the product form, a tuple with this key is a tuple of one axis
// less. So the call is the union of ordinary calls, one per choice of real axes, whose results are
// merged. The kernels do not depend on it.

namespace nsimplex::dense {

/// Rejects axes that the call does not have, repeated axes, and options that are not defined for
/// augmented calls.
void check_augment(const Call& call);

/// Whether any axis has a ones row.
bool augmented(const Call& call);

/// The call on some of the axes, with the scales of the whole call.
class PartialCall {
 public:
  PartialCall(const Call& call, std::vector<size_t> axes);

  /// The call refers to this object.
  Call call() const;
  const std::vector<size_t>& axes() const { return axes_; }

 private:
  Call whole_;
  std::vector<size_t> axes_;
  std::vector<at::Tensor> keys_, values_, key_masks_;
  std::vector<c10::SymInt> window_;
  OptionalTensor key_lengths_;
  std::optional<c10::SymInt> seed_;
};

/// The ordinary calls of an augmented one. The first is the call without rows of ones. None is
/// without axes.
std::vector<PartialCall> partial_calls(const Call& call);

/// Computes an augmented call by calling `run` for its ordinary parts.
Output augmented_forward(const Call& call, Output (*run)(const Call&));
Gradients augmented_backward(const BackwardCall& call, Gradients (*run)(const BackwardCall&));

}  // namespace nsimplex::dense
