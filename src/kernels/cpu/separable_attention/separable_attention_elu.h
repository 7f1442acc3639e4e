#pragma once

#include <cstdint>

namespace nsimplex::kernels {

/// Numbers that one task takes: enough to pay for handing it out, few enough to balance.
inline constexpr int64_t kEluTask = int64_t{1} << 13;

/// to[i] = elu(z) + 1 with z = scale from[i]: z + 1 above 0, exp(z) below, which expm1(z) + 1 would
/// round to a multiple of epsilon. NaN stays NaN. `to` may be `from`. Every number is computed by
/// itself, wherever it lies: the same bits however the range is cut.
void elu_features(const float* from, float* to, int64_t count, float scale);
void elu_features(const double* from, double* to, int64_t count, double scale);

}  // namespace nsimplex::kernels
