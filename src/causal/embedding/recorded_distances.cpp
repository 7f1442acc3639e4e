// Computes hyperbolic distances by ATen calls, for derivatives of any order.

#include "causal/embedding/recorded_distances.h"

#include <ATen/ATen.h>

namespace nsimplex::causal {
namespace {

using at::Tensor;

// Below this radius, series in the squared radius replace functions of the radius, which has no
// derivative at 0. Their eight terms reach the precision of double.
constexpr double kSmall = 0.5;

// sum over k from 0 to 8 of q^k / ((first + 1) .. (first + 2 k)).
Tensor series(const Tensor& q, int first) {
  Tensor sum = at::ones_like(q);
  for (int k = 8; k > 0; --k) sum = 1 + sum * q / ((first + 2 * k - 1) * (first + 2 * k));
  return sum;
}

// all pairs of rows
Tensor of_pairs(const Tensor& rows, const Tensor& others) {
  return rows.unsqueeze(1) - others.unsqueeze(0);
}

}  // namespace

// s = sinh(d / 2)^2 is the sum of positive terms where both radii are large, so no digits cancel:
//   s = sinh((r - r') / 2)^2 + sinh r sinh r' |u - u'|^2 / 4.
// With w = sinh(r) u and h = sinh(r / 2)^2, it is for two small radii
//   s = |w - w'|^2 / 4 - (h - h')^2,
// and otherwise, where the points are not near each other,
//   s = h + h' + 2 h h' - <w, w'> / 2.
Tensor recorded_distances(const Tensor& tangents) {
  const Tensor rows = tangents.to(at::kDouble), squares = rows.square().sum(-1, /*keepdim=*/true);
  const Tensor small = squares < kSmall * kSmall, large = small.logical_not();
  const Tensor q = squares.masked_fill(large, 0), radius = squares.masked_fill(small, 1).sqrt();
  // Rows of the other kind are 0.
  const Tensor direction = (rows / radius).masked_fill(small, 0);
  const Tensor sinh = radius.sinh().masked_fill(small, 0);
  const Tensor of_small = rows.masked_fill(large, 0) * series(q, 1), of_large = direction * sinh;
  const Tensor h_small = q * series(q, 2) / 4;
  const Tensor h_large = (radius / 2).sinh().square().masked_fill(small, 0);

  const Tensor both_large =
      (of_pairs(radius, radius).squeeze(-1) / 2).sinh().square() +
      at::mm(sinh, sinh.t()) * of_pairs(direction, direction).square().sum(-1) / 4;
  const Tensor both_small = of_pairs(of_small, of_small).square().sum(-1) / 4 -
                            of_pairs(h_small, h_small).squeeze(-1).square();
  const Tensor mixed = 2 * at::mm(h_small, h_large.t()) - at::mm(of_small, of_large.t()) / 2;
  const Tensor h = h_small + h_large;
  const Tensor any = h + h.t() + mixed + mixed.t();

  const Tensor two_large = large.logical_and(large.t()), two_small = small.logical_and(small.t());
  const Tensor s = at::where(two_large, both_large, at::where(two_small, both_small, any));
  const Tensor apart = s > 0;
  return (2 * s.masked_fill(apart.logical_not(), 1).sqrt().asinh())
      .masked_fill(apart.logical_not(), 0);
}

}  // namespace nsimplex::causal
