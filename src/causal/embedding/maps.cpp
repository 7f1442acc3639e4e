// Between the models of hyperbolic space, composed of ATen's operators: differentiable everywhere
// but where the formulas have no derivative.

#include <ATen/ATen.h>
#include <nsimplex/causal_embedding.h>
#include <torch/library.h>

namespace nsimplex {
namespace {

using at::Tensor;

// value f(|x|) / |x| for vectors in the last dimension, `limit` x at the origin.
template <class Function>
Tensor along(const Tensor& vectors, double limit, const Function& function) {
  // The norm has no derivative at 0: there its place is taken by 1.
  const Tensor squares = vectors.square().sum(-1, true);
  const Tensor zero = squares == 0;
  const Tensor norm = squares.masked_fill(zero, 1).sqrt();
  return vectors * (function(norm) / norm).masked_fill(zero, limit);
}

void check_vectors(const char* function, const char* argument, const Tensor& vectors) {
  TORCH_CHECK_TYPE(at::isFloatingType(vectors.scalar_type()), "[", function, "] ", argument,
                   ": expected floating point numbers, got ", vectors.scalar_type());
  TORCH_CHECK_VALUE(vectors.dim() >= 1 && vectors.size(-1) >= 1, "[", function, "] ", argument,
                    ": expected shape [.., d], got ", vectors.sizes());
}

}  // namespace

Tensor hyperboloid_points(const Tensor& tangents) {
  check_vectors("hyperboloid_points", "tangents", tangents);
  const Tensor space = along(tangents, 1, [](const Tensor& r) { return r.sinh(); });
  // Of the spatial part, so that <p, p> = -1 holds to rounding.
  return at::cat({(1 + space.square().sum(-1, true)).sqrt(), space}, -1);
}

Tensor ball_points(const Tensor& tangents) {
  check_vectors("ball_points", "tangents", tangents);
  return along(tangents, 0.5, [](const Tensor& r) { return (0.5 * r).tanh(); });
}

Tensor ball_tangents(const Tensor& ball) {
  check_vectors("ball_tangents", "ball", ball);
  return along(ball, 2, [](const Tensor& norm) { return 2 * norm.atanh(); });
}

namespace {

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("hyperboloid_points(Tensor tangents) -> Tensor", TORCH_FN(hyperboloid_points));
  m.def("ball_points(Tensor tangents) -> Tensor", TORCH_FN(ball_points));
  m.def("ball_tangents(Tensor ball) -> Tensor", TORCH_FN(ball_tangents));
}

}  // namespace
}  // namespace nsimplex
