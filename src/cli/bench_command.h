#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace nsimplex::cli {

/// A matrix product of this edge and of the case's dtype is the machine's own yardstick. It is
/// called sgemm in every dtype, so that readers of the JSON lines need one name.
inline constexpr int64_t kGemmSize = 1024;

/// Median times in milliseconds of several contestants that take turns: a machine that is slower
/// for a while is slower for all of them, so that ratios hold where absolute times do not. One
/// warm-up round is not counted. Ctrl-C ends after the contestant at work, with the rounds so far
/// (Interrupted when there is none). `between` is called after each counted round with its number,
/// from 1.
std::vector<double> interleaved_medians(const std::vector<std::function<void()>>& contestants,
                                        int rounds, const std::function<void(int)>& between);

}  // namespace nsimplex::cli
