#pragma once

#include "attention/common/attention_call.h"

// Ones rows: an augmented axis has one more key, all ones, that every query sees whatever window,
// mask and lengths say. Under the product form a tuple that takes it is a tuple of one axis less,
// so the call is the union of ordinary calls, one for every choice of real axes, and their results
// merge. Nothing of it reaches the kernels.

namespace nsimplex::dense {

/// Refuses axes that are not the call's, repeated ones, and options that have no meaning beside
/// them.
void check_augment(const Call& call);

/// Whether any axis has a ones row.
bool augmented(const Call& call);

/// The call on some of the axes, with the scales of all of them.
class PartialCall {
 public:
  PartialCall(const Call& call, std::vector<size_t> axes);

  /// Views this object.
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

/// The ordinary calls that an augmented one is made of: the call without ones rows first, never one
/// without axes.
std::vector<PartialCall> partial_calls(const Call& call);

/// An augmented call by `run` on its parts, which are ordinary.
Output augmented_forward(const Call& call, Output (*run)(const Call&));
Gradients augmented_backward(const BackwardCall& call, Gradients (*run)(const BackwardCall&));

}  // namespace nsimplex::dense
