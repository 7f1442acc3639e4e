// Declares the choice of a SIMD level and the properties of the processor that it depends on.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nsimplex::kernels {

/// Names of the SIMD levels this machine can run, best first, e.g. {"AVX3_BF16", "AVX3", "AVX2"}.
std::vector<std::string> simd_levels();

/// Levels that compute in plain C++ as others do by instructions that this machine may lack, for
/// tests: AMX_EMULATED. They run only by name.
std::vector<std::string> emulated_simd_levels();

/// The properties of a processor that decide the order of its levels.
struct Processor {
  bool intel = false;
  bool amd = false;         ///< measured: products of pairs are twice as fast as fp32 ones
  bool bf16_pairs = false;  ///< AVX512-BF16
  bool bf16_tiles = false;  ///< AMX-BF16 and AVX512-BF16
};

/// Whether loads limit products in registers on such a processor: Intel with AVX-512 and without
/// AVX512-BF16 (measured on Ice Lake). Others keep the tiles that were measured there.
bool loads_limit_products(Processor processor);

/// Whether the scores of dense attention have tiles that load less for each multiply-add
/// (TileShape): where loads limit products.
bool wide_score_tiles();

/// Another answer, for tests; none returns to that of this processor.
void set_wide_score_tiles(std::optional<bool> wide);

/// Inserts the levels AMX_BF16 and AVX3_BF16 into `targets`, which are Highway's, best first. No
/// level is before one that is faster on that family of processors.
std::vector<std::string> preferred_levels(Processor processor, std::vector<std::string> targets);

/// The level in use: the best one, or the one that NSIMPLEX_SIMD names.
std::string simd_level();

/// Forces a level for this process; an unknown or unavailable name throws std::invalid_argument
/// that lists the available ones. An empty name returns to the default.
void set_simd_level(const std::string& name);

/// How the level multiplies bf16: widened to fp32; by AVX512-BF16's products of pairs (AVX3_BF16,
/// which is AVX3 with these); or by matrix tiles (AMX_BF16, likewise, and AMX_EMULATED on AVX2).
enum class Bf16Products { numbers, pairs, tiles };
Bf16Products bf16_products();

/// The products for a call; the smaller of its numbers of key and value channels decides. If nobody
/// named the level, calls with fewer than kTileChannels are widened instead of using tiles, which
/// were not faster there.
constexpr int64_t kTileChannels = 64;
Bf16Products bf16_products(int64_t channels);

/// Applies NSIMPLEX_SIMD on the first call. An invalid name throws as above, on every call until it
/// is corrected. Plans call this, so no kernel runs before.
void read_simd_environment();

/// fp32 multiply-add rate of one core at the active level, in GFLOP/s, measured on registers.
double measure_fma_peak();

}  // namespace nsimplex::kernels
