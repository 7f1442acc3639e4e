// The checks of the rotary operator and its angles.

#include <ATen/ATen.h>
#include <c10/core/SymBool.h>

#include <cmath>

#include "attention/dense/dense_arguments.h"
#include "attention/rotary/rotary_call.h"

namespace nsimplex::rotations {
namespace {

using at::Tensor;

// Positions are float64 numbers, which are all different up to here.
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
  TORCH_CHECK_TYPE(at::isFloatingType(angles.scalar_type()),
                   "[rotary] angles: expected floating numbers, got ", angles.scalar_type());
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
  // A symbolic offset has its value when the traced call runs.
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
    // In double: in fp32 an angle of some thousand radians has lost its last digits.
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

}  // namespace nsimplex::rotations
