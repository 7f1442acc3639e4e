// Schema, public function, shapes and the plain ATen version of the rotary operator.

#include <ATen/ATen.h>
#include <nsimplex/rotary.h>
#include <torch/library.h>

#include "attention/dense/dense_arguments.h"
#include "attention/dense/dense_layout.h"
#include "attention/dispatch.h"
#include "attention/rotary/rotary_call.h"

namespace nsimplex {
namespace rotations {

using at::Tensor;

Tensor dispatch(const Call& call) {
  static const auto op = find_operator<decltype(flat<&composite>)>("nsimplex::rotary");
  return op.call(call.x, call.chunk, call.base, call.offset, call.positions, call.angles,
                 call.inverse);
}

std::pair<Tensor, Tensor> planes_of(const Tensor& x, int64_t chunk) {
  const int64_t planes = chunk / 2;
  const Tensor pairs =
      x.unflatten(-1, {-1, chunk}).narrow(-1, 0, 2 * planes).unflatten(-1, {planes, 2});
  return {pairs.select(-1, 0).flatten(-2), pairs.select(-1, 1).flatten(-2)};
}

Tensor composite(const Call& call) {
  check(call);
  const Turns turns = turns_of(call);
  const Tensor cosines = turns.cosines.transpose(1, 2), sines = turns.sines.transpose(1, 2);
  const Tensor wide = call.x.to(cosines.scalar_type());
  const auto [a, b] = planes_of(wide, call.chunk);
  const Tensor turned = at::stack({a * cosines - b * sines, a * sines + b * cosines}, -1);
  // [B, H, T, P, 2] -> chunks of whole planes, and the channel that stays.
  Tensor chunks = turned.unflatten(-2, {-1, call.chunk / 2}).flatten(-2);
  if (call.chunk % 2 == 1) {
    const Tensor last = wide.unflatten(-1, {-1, call.chunk}).narrow(-1, call.chunk - 1, 1);
    chunks = at::cat({chunks, last}, -1);
  }
  return dense::in_order_of(call.x, chunks.flatten(-2));
}

namespace {

Tensor meta(const Call& call) {
  check(call);
  return dense::empty_in_order(call.x, call.x.sym_sizes(), call.x.options());
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "rotary(Tensor x, *, int chunk=2, float base=10000., SymInt offset=0, Tensor? "
      "positions=None, "
      "Tensor? angles=None, bool inverse=False) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) { m.impl("rotary", TORCH_FN(flat<&meta>)); }

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("rotary", TORCH_FN(flat<&composite>));
}

}  // namespace
}  // namespace rotations

at::Tensor rotary(const at::Tensor& x, const RotaryOptions& options) {
  const at::Tensor heads_first = dense::swap_heads(options.layout, x);
  const at::Tensor turned =
      rotations::dispatch({heads_first, options.chunk, options.base, options.offset,
                           options.positions, options.angles, options.inverse});
  return dense::swap_heads(options.layout, turned);
}

}  // namespace nsimplex
