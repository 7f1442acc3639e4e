// The checks of the rotary operator and its angles.
//
// The rotary operator on the CPU: one pass over x.

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>
#include <c10/core/SymBool.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>

#include "attention/common/attention_arguments.h"
#include "attention/rotary/rotary_call.h"
#include "kernels/common/rounding.h"
#include "support/parallel.h"
#include "support/plain_tensor.h"

namespace nsimplex::rotations {
namespace {

using at::Tensor;

// Positions are float64 numbers, which represent all integers up to this one.
constexpr int64_t kLargestOffset = int64_t{1} << 53;

bool holds(const c10::SymBool& condition) { return condition.expect_true(__FILE__, __LINE__); }

void check_positions(const Call& call) {
  const Tensor& positions = *call.positions;
  TORCH_CHECK_TYPE(!positions.is_complex() && positions.scalar_type() != at::kBool,
                   "[rotary] positions: expected integers or floating numbers, got ",
                   positions.scalar_type());
  TORCH_CHECK_VALUE(!call.angles, "[rotary] positions: given beside angles, expected one of them");
  TORCH_CHECK_VALUE(holds(call.offset.sym_eq(0)),
                    "[rotary] positions: given beside offset, expected one of them");
  const int64_t dimensions = positions.dim();
  TORCH_CHECK_VALUE(
      (dimensions == 1 || dimensions == 2) &&
          holds(positions.sym_size(-1).sym_eq(call.x.sym_size(2))) &&
          (dimensions == 1 || holds(positions.sym_size(0).sym_eq(call.x.sym_size(0)))),
      "[rotary] positions: expected shape [", call.x.sym_size(2), "] or [", call.x.sym_size(0),
      ", ", call.x.sym_size(2), "], got ", positions.sym_sizes());
}

void check_angles(const Call& call) {
  const Tensor& angles = *call.angles;
  TORCH_CHECK_TYPE(is_floating(angles), "[rotary] angles: expected floating numbers, got ",
                   angles.scalar_type());
  TORCH_CHECK_VALUE(holds(call.offset.sym_eq(0)),
                    "[rotary] angles: given beside offset, expected one of them");
  const c10::SymInt batch = call.x.sym_size(0), heads = call.x.sym_size(1),
                    length = call.x.sym_size(2),
                    planes = call.x.sym_size(3) / call.chunk * (call.chunk / 2);
  const auto one_or = [](const c10::SymInt& size, const c10::SymInt& whole) {
    return holds(size.sym_eq(1).sym_or(size.sym_eq(whole)));
  };
  const int64_t dimensions = angles.dim();
  const int64_t row = dimensions == 4 ? 1 : 0;
  TORCH_CHECK_VALUE(
      dimensions >= 2 && dimensions <= 4 && holds(angles.sym_size(-1).sym_eq(planes)) &&
          holds(angles.sym_size(row).sym_eq(length)) &&
          (dimensions < 3 || one_or(angles.sym_size(-2), heads)) &&
          (dimensions < 4 || one_or(angles.sym_size(0), batch)),
      "[rotary] angles: expected shape [T, P], [T, H, P] or [B, T, H, P] with T = ", length,
      ", P = ", planes, ", B = ", batch, " or 1, H = ", heads, " or 1, got ", angles.sym_sizes());
}

}  // namespace

void check(const Call& call) {
  const Tensor& x = call.x;
  TORCH_CHECK_VALUE(
      x.dim() == 4,
      "[rotary] x: expected 4 dimensions [batch, heads, length, channels], got shape ",
      x.sym_sizes());
  const at::ScalarType type = x.scalar_type();
  TORCH_CHECK_TYPE(
      type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf,
      "[rotary] x: expected float32, float64, bfloat16 or float16, got ", type);
  TORCH_CHECK_VALUE(call.chunk >= 2, "[rotary] chunk: expected at least 2, got ", call.chunk);
  TORCH_CHECK_VALUE(holds(x.sym_size(3).sym_ge(1)) && holds((x.sym_size(3) % call.chunk).sym_eq(0)),
                    "[rotary] x: expected a number of channels divisible by chunk ", call.chunk,
                    ", got ", x.sym_size(3));
  TORCH_CHECK_VALUE(std::isfinite(call.base) && call.base > 0,
                    "[rotary] base: expected a positive number, got ", call.base);
  for (const OptionalTensor* each : {&call.positions, &call.angles}) {
    TORCH_CHECK_VALUE(!*each || (*each)->device() == x.device(), "[rotary] ",
                      each == &call.angles ? "angles" : "positions", ": expected the device of x, ",
                      x.device(), ", got ", (*each)->device());
  }
  // A symbolic offset has a value only when the traced call runs.
  const std::optional<int64_t> offset = call.offset.maybe_as_int();
  TORCH_CHECK_VALUE(!offset || (*offset >= -kLargestOffset && *offset <= kLargestOffset),
                    "[rotary] offset: expected -2^53 to 2^53, got ", call.offset);
  if (call.positions) check_positions(call);
  if (call.angles) check_angles(call);
}

Tensor with_batch_and_heads(const Tensor& angles) {
  if (angles.dim() == 2) return angles.unsqueeze(1).unsqueeze(0);
  return angles.dim() == 3 ? angles.unsqueeze(0) : angles;
}

Turns turns_of(const Call& call) {
  const at::ScalarType type = dense::accumulate_type(call.x.scalar_type());
  Tensor angles;
  if (call.angles) {
    angles = with_batch_and_heads(*call.angles);
    angles = angles.to(c10::promoteTypes(angles.scalar_type(), type));
  } else {
    // Computes in double, because an fp32 angle of some thousand radians has lost its last digits.
    const at::TensorOptions options = call.x.options().dtype(at::kDouble);
    const Tensor positions =
        call.positions ? call.positions->to(at::kDouble)
                       : at::arange(call.x.sym_size(2), options) + c10::Scalar(call.offset);
    const int64_t planes = call.x.size(3) / call.chunk * (call.chunk / 2);
    const Tensor frequencies =
        at::pow(call.base, at::arange(planes, options) * (-1.0 / static_cast<double>(planes)));
    angles = positions.unsqueeze(-1) * frequencies;
    if (angles.dim() == 2) angles = angles.unsqueeze(0);
    angles = angles.unsqueeze(2);
  }
  const Tensor sines = angles.sin().to(type);
  return {angles.cos().to(type), call.inverse ? sines.neg() : sines};
}

namespace {

using at::Tensor;

// Elements per task: enough to pay for starting it, few enough to balance the load.
constexpr int64_t kTaskElements = int64_t{1} << 14;

// With a chunk size that the compiler knows (0: `chunk`), the usual pairs need no inner loop over
// planes.
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
  // A dimension of size 1 for all batch entries or heads gets stride 0.
  const Tensor cosines = turns.cosines.contiguous().expand({batch, -1, heads, -1});
  const Tensor sines = turns.sines.contiguous().expand({batch, -1, heads, -1});
  const Wide *const cosine = cosines.const_data_ptr<Wide>(), *const sine =
                                                                 sines.const_data_ptr<Wide>();
  const T* const from = x.const_data_ptr<T>();
  T* const to = out.mutable_data_ptr<T>();

  const bool inside = dense::heads_inside(x);
  const int64_t rows = std::max<int64_t>(kTaskElements / std::max<int64_t>(heads * channels, 1), 1);
  const int64_t blocks = ceil_div(length, rows);
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
