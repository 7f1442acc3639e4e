// Declares the kernels on pairs of points of hyperbolic space.

#pragma once

#include <cstdint>

namespace nsimplex::kernels {

/// Arrays of points are padded with zeros to a multiple of this.
inline constexpr int64_t kHyperbolicLanes = 8;

/// Points of hyperbolic space by distance r from the origin and direction u, with the functions of
/// r that pairs need, computed once per point.
struct HyperbolicPoints {
  int64_t count = 0, dimension = 0;    ///< count with the padding
  const double* directions = nullptr;  ///< [dimension, count]
  const double* sinh = nullptr;        ///< [count], of r
  const double* grown = nullptr;       ///< [count], e^(r / 2)
  const double* shrunk = nullptr;      ///< [count], e^(-r / 2)
};

/// One of them; its direction is contiguous.
struct HyperbolicPoint {
  const double* direction = nullptr;  ///< [dimension]
  double sinh = 0, cosh = 0, grown = 0, shrunk = 0;
};

/// q = sinh(d / 2)^2 of the point's distance to all others,
///
///     q = sinh((r - s) / 2)^2 + sinh r sinh s |u - v|^2 / 4,
///
/// The results go to squares [others.count]. e^(r / 2) e^(-s / 2) gives the first sinh, exact to an
/// absolute 1e-16 for r = s.
void hyperbolic_squares(const HyperbolicPoint& point, const HyperbolicPoints& others,
                        double* squares);

/// e^-d = (sqrt q + sqrt(1 + q))^-2 of the same pairs into nearness [others.count].
void hyperbolic_nearness(const HyperbolicPoint& point, const HyperbolicPoints& others,
                         double* nearness);

/// Points closer than 2e-15 coincide: no digit of so small a q is right.
inline constexpr double kHyperbolicLeastSquare = 1e-30;

/// The change of f = sum over others of weights e^-d when the point moves: df/dr goes to *radial,
/// and turn [dimension] has the part across u which, times -sinh r / 2, is df/du. A point that
/// coincides is ignored. `weights` [others.count] are overwritten.
void hyperbolic_pull(const HyperbolicPoint& point, const HyperbolicPoints& others, double* weights,
                     double* radial, double* turn);

}  // namespace nsimplex::kernels
