#pragma once

#include "causal/matrix.h"

namespace nsimplex::causal {

/// Points by their tangents z = r u at the origin. A vector at z is given by the vector at the
/// origin that the geodesic from there carries to it: its part along u is along the geodesic, its
/// length the hyperbolic one. All of it holds at radii where coordinates on the hyperboloid do not.

/// exp_z(move), Eq. A.16: the point reached from z along `move`, |move| far. Series near 0.
Vector exponential(const Vector& z, const Vector& move);

/// A vector at z carried to `to` along the geodesic between them: a rotation in the plane of both
/// by the area of their triangle with the origin.
Vector transport(const Vector& z, const Vector& to, const Vector& vector);

/// The Riemannian gradient at z from the gradient by z; Eq. 19 and 20 in these coordinates.
Vector riemannian(const Vector& z, const Vector& gradient);

}  // namespace nsimplex::causal
