#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

namespace nsimplex::training {

/// A run that cannot go on: its loss or gradient is no longer finite.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws Diverged, which names the step (counted from 1) and what is not finite. To be called
/// before the update, which would spread the damage over every weight.
void require_finite(int64_t step, double loss, double gradient_norm = 0.0);

/// The same for what a model answers after `step` updates, or after its training. An update can spoil the weights although the loss before it
/// was finite, and after the last one there is no further loss that would tell.
void require_finite_outputs(std::optional<int64_t> step, const at::Tensor& outputs);

}  // namespace nsimplex::training
