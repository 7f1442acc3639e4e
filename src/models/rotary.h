#pragma once

#include <ATen/core/Tensor.h>

namespace nsimplex::detail {

/// Rotations of standard RoPE (Su et al. 2021, arXiv 2104.09864), kept between calls.
///
/// Channel pair c = (2c, 2c+1) at position t turns by t base^(-c / (D/2)), as the complex factor
/// exp(i t theta_c). The table grows with the longest sequence seen; one table serves one thread at
/// a time.
class RotaryTable {
 public:
  RotaryTable(int64_t head_dim, double base) : head_dim_(head_dim), base_(base) {}

  /// x [B, T, H, D], positions 0..T-1 -> the same shape and dtype; half types turn in fp32.
  at::Tensor rotate(const at::Tensor& x);

 private:
  const at::Tensor& factors(int64_t length, const at::Tensor& like);

  int64_t head_dim_;
  double base_;
  at::Tensor factors_;  // [longest, 1, D/2], complex
};

}  // namespace nsimplex::detail
