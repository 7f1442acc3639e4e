#pragma once

#include <cstdint>
#include <stdexcept>

namespace nsimplex::training {

/// A run that cannot go on: its loss or gradient is no longer finite.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws Diverged, which names the step (counted from 1) and what is not finite. To be called
/// before the update, which would spread the damage over every weight.
void require_finite(int64_t step, double loss, double gradient_norm = 0.0);

}  // namespace nsimplex::training
