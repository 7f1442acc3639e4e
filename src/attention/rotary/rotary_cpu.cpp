// The rotary operator on the CPU: one pass over x.

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>

#include "attention/dense/dense_arguments.h"
#include "attention/rotary/rotary_call.h"
#include "support/parallel.h"

namespace nsimplex::rotations {
namespace {

using at::Tensor;

// Elements of a task: enough to pay for handing it out, few enough to balance.
constexpr int64_t kTaskElements = int64_t{1} << 14;

// A chunk size that the compiler knows (0: `chunk`) leaves no inner loop over planes for the usual
// pairs.
template <int64_t known_chunk, class T, class Wide>
void turn_row(const T* __restrict from, T* __restrict to, const Wide* __restrict cosines,
              const Wide* __restrict sines, int64_t channels, int64_t chunk) {
  if constexpr (known_chunk > 0) chunk = known_chunk;
  for (int64_t first = 0; first < channels; first += chunk, from += chunk, to += chunk) {
    int64_t a = 0;
    for (; a + 1 < chunk; a += 2, ++cosines, ++sines) {
      const Wide x = from[a], y = from[a + 1];
      to[a] = static_cast<T>(x * *cosines - y * *sines);
      to[a + 1] = static_cast<T>(x * *sines + y * *cosines);
    }
    if (a < chunk) to[a] = from[a];
  }
}

template <class T>
void turn(const Tensor& x, const Tensor& out, const Turns& turns, int64_t chunk) {
  using Wide = at::opmath_type<T>;
  const int64_t batch = x.size(0), heads = x.size(1), length = x.size(2), channels = x.size(3);
  // A size of 1 that stands for all batch entries or heads gets stride 0.
  const Tensor cosines = turns.cosines.contiguous().expand({batch, -1, heads, -1});
  const Tensor sines = turns.sines.contiguous().expand({batch, -1, heads, -1});
  const Wide *const cosine = cosines.const_data_ptr<Wide>(), *const sine =
                                                                 sines.const_data_ptr<Wide>();
  const T* const from = x.const_data_ptr<T>();
  T* const to = out.mutable_data_ptr<T>();

  const bool inside = dense::heads_inside(x);
  const int64_t rows = std::max<int64_t>(kTaskElements / std::max<int64_t>(heads * channels, 1), 1);
  const int64_t blocks = (length + rows - 1) / rows;
  parallel_tasks(batch * blocks, [&](int64_t task, int) {
    const int64_t b = task / blocks, begin = task % blocks * rows;
    const int64_t end = std::min(begin + rows, length);
    const auto row = [&](int64_t h, int64_t t) {
      const int64_t table = b * cosines.stride(0) + t * cosines.stride(1) + h * cosines.stride(2);
      const T* const x_row = from + b * x.stride(0) + h * x.stride(1) + t * x.stride(2);
      T* const out_row = to + b * out.stride(0) + h * out.stride(1) + t * out.stride(2);
      const auto run = chunk == 2 ? &turn_row<2, T, Wide> : &turn_row<0, T, Wide>;
      run(x_row, out_row, cosine + table, sine + table, channels, chunk);
    };
    // In the order of memory.
    const int64_t count = end - begin;
    for (int64_t i = 0; i < count * heads; ++i) {
      if (inside) {
        row(i % heads, begin + i / heads);
      } else {
        row(i / count, begin + i % count);
      }
    }
  });
}

Tensor cpu(const Call& call) {
  check(call);
  const Tensor x = call.x.stride(3) == 1 ? call.x : call.x.contiguous();
  const Tensor out = dense::empty_in_order(call.x, call.x.sym_sizes(), call.x.options());
  const Turns turns = turns_of(call);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "rotary",
                                  [&] { turn<scalar_t>(x, out, turns, call.chunk); });
  return out;
}

TORCH_LIBRARY_IMPL(nsimplex, CPU, m) { m.impl("rotary", TORCH_FN(flat<&cpu>)); }

}  // namespace
}  // namespace nsimplex::rotations
