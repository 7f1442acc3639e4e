#include "analysis/norms.h"

#include <ATen/ATen.h>

#include <cmath>

namespace nsimplex::analysis {
namespace {

using at::Tensor;

Tensor row_norms(const Tensor& x) { return x.norm(2, -1, /*keepdim=*/true); }

// x / length, and `otherwise` where the length is zero.
Tensor normalized(const Tensor& x, const Tensor& length, const Tensor& otherwise) {
  return at::where(length > 0, x / length, otherwise);
}

}  // namespace

Tensor as_problems(const Tensor& values, const Tensor& like) {
  std::vector<int64_t> shape(like.dim(), 1);
  shape[0] = values.size(0);
  return values.view(shape);
}

Tensor norms(const Tensor& x, Norm norm) {
  if (norm == Norm::frobenius) return x.flatten(1).norm(2, 1);
  return row_norms(x).flatten(1).amax(1) / std::sqrt(static_cast<double>(x.size(-1)));
}

Tensor norming(const Tensor& y, Norm norm) {
  const Tensor zero = at::zeros_like(y);
  if (norm == Norm::frobenius) return normalized(y, as_problems(norms(y, norm), y), zero);
  const Tensor lengths = row_norms(y);
  const Tensor flat = lengths.flatten(1);
  const Tensor first = at::zeros_like(flat).scatter_(1, flat.argmax(1, /*keepdim=*/true), 1);
  const Tensor rows = first.view_as(lengths) / std::sqrt(static_cast<double>(y.size(-1)));
  return normalized(y, lengths, zero) * rows;
}

Tensor steepest(const Tensor& g, Norm norm, const Tensor& fallback) {
  if (norm == Norm::frobenius) return normalized(g, as_problems(norms(g, norm), g), fallback);
  const Tensor lengths = row_norms(g);
  const double root = std::sqrt(static_cast<double>(g.size(-1)));
  return at::where(lengths > 0, g / lengths * root, fallback);
}

Tensor project_rows(const Tensor& x, double radius, bool sphere) {
  const Tensor lengths = row_norms(x);
  const Tensor moved = sphere ? lengths > 0 : lengths > radius;
  return at::where(moved, x / lengths * radius, x);
}

}  // namespace nsimplex::analysis
