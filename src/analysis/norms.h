#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/export.h>

#include <cstdint>

// Norms of problems that lie one after the other along the leading axis, and what their duality
// says: where a linear function is largest on the unit ball, and which linear function a norm is.
namespace nsimplex::analysis {

enum class Norm {
  frobenius,
  inf_rms  // the largest root mean square of a row, a vector along the last axis
};

/// [B, ..] -> [B].
at::Tensor norms(const at::Tensor& x, Norm norm);

/// u with <u, y> = |y| and <u, .> <= |.|, for each problem: the gradient of the norm at y. Zero
/// where y is.
at::Tensor norming(const at::Tensor& y, Norm norm);

/// The point of the unit ball at which <g, .> is largest; rows (frobenius: problems) of which g
/// says nothing stay as in `fallback`.
at::Tensor steepest(const at::Tensor& g, Norm norm, const at::Tensor& fallback);

/// x with every row longer than `radius` (Euclidean) cut to it; with `sphere` the shorter ones but
/// zero are stretched as well.
NSIMPLEX_API at::Tensor project_rows(const at::Tensor& x, double radius, bool sphere);

/// [B] as [B, 1, .., 1], to go with `like`.
at::Tensor as_problems(const at::Tensor& values, const at::Tensor& like);

}  // namespace nsimplex::analysis
