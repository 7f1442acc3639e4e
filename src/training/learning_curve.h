#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// How much sooner one model learns than another, read off their loss curves.
namespace nsimplex::training {

struct CurvePoint {
  int64_t step = 0;
  double loss = 0.0;
};

/// Centred moving average over 2 * reach + 1 points; towards the ends over as many as there are on
/// both sides, so that a straight line stays itself.
std::vector<CurvePoint> smooth(std::span<const CurvePoint> curve, int64_t reach);

/// The first step at which a curve is at or below `loss`, on straight lines between its points;
/// absent where it never is.
std::optional<double> first_step_at(std::span<const CurvePoint> curve, double loss);

struct SpeedUpPoint {
  int64_t step = 0;
  double speed_up = 0.0;  ///< 0: as fast, 0.01: 1 % fewer steps
};

/// Batch-wise speed-up of curve X over curve Y at each of X's steps t:
///
///     t_Y(L_X(t)) / t - 1,    t_Y(l) the first step at which Y reaches l
///
/// Steps whose loss Y never reaches are left out, as are those where X stands above Y's first
/// point, which Y has passed before it was first measured. (Pappone, "Beyond attention as a graph",
/// Figure 9.)
std::vector<SpeedUpPoint> speed_up(std::span<const CurvePoint> x, std::span<const CurvePoint> y);

}  // namespace nsimplex::training
