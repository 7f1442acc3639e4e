// Declares hyperbolic distances that autograd and tracing can record.

#pragma once

#include <ATen/core/Tensor.h>

namespace nsimplex::causal {

/// hyperbolic_distances() by ATen calls, which can be differentiated any number of times and run
/// inside transforms and traced graphs. The derivative of a distance 0 is 0.
at::Tensor recorded_distances(const at::Tensor& tangents);

}  // namespace nsimplex::causal
