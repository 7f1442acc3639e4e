// Declares how the bench commands measure and describe the machine.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/output.h"

namespace nsimplex::cli {

/// The machine's reference rate is a matrix product of this size in the dtype of the case. It is
/// called sgemm in every dtype, so that readers of the JSON lines need only one name.
inline constexpr int64_t kGemmSize = 1024;

/// Median times in milliseconds of several contestants that take turns. If the machine is slower
/// for a while, all of them are slower, so ratios are reliable even if absolute times are not. One
/// warm-up round is not counted. Ctrl-C stops after the current contestant, with the rounds so far
/// (Interrupted if there are none). `between` is called after each counted round with its number,
/// from 1.
std::vector<double> interleaved_medians(const std::vector<std::function<void()>>& contestants,
                                        int rounds, const std::function<void(int)>& between);

/// `bench attention --levels`: measures a few cases at every SIMD level, and returns the exit code.
struct LevelsOptions {
  int64_t seq = 1024;
  int repeats = 5;
  uint64_t seed = 1;
  bool json = false;
};
int bench_levels(const LevelsOptions& options);

/// Adds `processor`, `family` and `simd`, the level in use: a rate means little without them.
void add_processor(Json& line);

/// The same as a line of text.
std::string processor_line();

}  // namespace nsimplex::cli
