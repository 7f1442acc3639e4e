// Declares the Delaunay triangulation of points on a grid.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace nsimplex::graph {

/// A point of a square grid; both coordinates from 0 to 2^kGridBits.
struct GridPoint {
  int32_t x = 0, y = 0;
  auto operator<=>(const GridPoint&) const = default;
};

/// Coordinates with this number of bits are exact in fp32.
inline constexpr int kGridBits = 22;

/// Maps finite points [n, 2] to the grid: (p - lowest) 2^kGridBits / s, rounded, with one s for
/// both axes, the smallest power of two that is not below either extent. Points that are multiples
/// of 2^-kGridBits in the unit square are moved and scaled by powers of two only.
std::vector<GridPoint> snap_to_grid(std::span<const double> points);

/// The first two points at the same grid point, as (earlier, later); (-1, -1) if there are none.
struct Coincidence {
  int64_t first = -1, second = -1;
};
Coincidence find_coincidence(std::span<const GridPoint> points);

/// The edges (i, j), i < j, of the Delaunay triangulation of different points, in lexicographic
/// order. The result is exact: no circle through a triangle's corners has a point inside. If more
/// than three points lie on an empty circle, the polygon is cut from its lowest number on. Points
/// on one line are joined to their neighbours on it. O(n log n).
std::vector<int64_t> delaunay_edges(std::span<const GridPoint> points);

}  // namespace nsimplex::graph
