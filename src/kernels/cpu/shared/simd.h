#pragma once

#include <string>
#include <vector>

namespace nsimplex::kernels {

/// Names of the SIMD levels this machine can run, best first, e.g. {"AVX3_BF16", "AVX3", "AVX2"}.
std::vector<std::string> simd_levels();

/// The level in use: the best one, or the one that NSIMPLEX_SIMD names.
std::string simd_level();

/// Forces a level for this process; an unknown or unavailable name throws std::invalid_argument
/// that lists the available ones. An empty name returns to the default.
void set_simd_level(const std::string& name);

/// Whether the level has AVX512-BF16's products of pairs: AVX3_BF16, which is AVX3 with these.
bool bf16_pairs();

/// Applies NSIMPLEX_SIMD on the first call. An invalid name throws as above, on every call until it
/// is corrected. Plans call this, so no kernel runs before.
void read_simd_environment();

/// fp32 multiply-add rate of one core at the active level, in GFLOP/s, measured on registers.
double measure_fma_peak();

}  // namespace nsimplex::kernels
