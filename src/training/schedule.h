#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace nsimplex::training {

/// Linear warm-up, then half a cosine down to a floor:
///
///   rate(t) = peak (t + 1) / (warmup + 1)                                    t < warmup
///           = floor + (peak - floor) (1 + cos(pi (t - warmup) / (steps - 1 - warmup))) / 2 after
///
/// for step t = 0 .. steps - 1: the first update is not zero, the peak is reached at t = warmup,
/// the floor at the last step. (Loshchilov, Hutter, "SGDR", ICLR 2017.)
struct Schedule {
  double peak, floor;
  int64_t warmup, steps;

  double rate(int64_t step) const {
    if (step < warmup)
      return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
    const double length = static_cast<double>(std::max<int64_t>(steps - 1 - warmup, 1));
    const double done = std::min(static_cast<double>(step - warmup) / length, 1.0);
    return floor + (peak - floor) * 0.5 * (1 + std::cos(std::numbers::pi * done));
  }
};

/// The same warm-up, then a constant rate or a line that would reach 0 one step after the last:
///
///   rate(t) = peak (t + 1) / (warmup + 1)                    t < warmup
///           = peak                                           after, constant
///           = peak (steps - t) / (steps - warmup)            after, decaying
///
/// A line also reaches 0 with the end of a budget of time, of which the share `spent` is gone:
/// there it is at most peak (1 - spent).
struct LinearSchedule {
  double peak;
  int64_t warmup, steps;
  bool decays;

  double rate(int64_t step, double spent = 0.0) const {
    if (step < warmup) {
      return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
    }
    if (!decays) return peak;
    const double left = static_cast<double>(std::max<int64_t>(steps - step, 0)) /
                        static_cast<double>(std::max<int64_t>(steps - warmup, 1));
    return peak * std::min(left, std::max(1 - spent, 0.0));
  }
};

}  // namespace nsimplex::training
