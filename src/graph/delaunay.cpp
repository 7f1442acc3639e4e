// Computes the exact Delaunay triangulation of points in the plane.

#include "graph/delaunay.h"

#include <algorithm>
#include <array>
#include <boost/polygon/voronoi.hpp>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "support/infinity.h"

namespace nsimplex::graph {
namespace {

using Edges = std::vector<std::array<int64_t, 2>>;

void add_edge(Edges& edges, int64_t i, int64_t j) {
  edges.push_back({std::min(i, j), std::max(i, j)});
}

// Whether d is inside or on the circle through a, b, c, which are in counterclockwise order. The
// determinant has at most 4 kGridBits + 5 bits.
bool in_circle(GridPoint a, GridPoint b, GridPoint c, GridPoint d) {
  const auto from_d = [&](GridPoint p) { return std::array<int64_t, 2>{p.x - d.x, p.y - d.y}; };
  const auto [ax, ay] = from_d(a);
  const auto [bx, by] = from_d(b);
  const auto [cx, cy] = from_d(c);
  const auto term = [](int64_t x, int64_t y, int64_t minor) {
    return static_cast<__int128>(x * x + y * y) * minor;
  };
  return term(ax, ay, bx * cy - by * cx) + term(bx, by, cx * ay - cy * ax) +
             term(cx, cy, ax * by - ay * bx) >=
         0;
}

// The diagonals of the Delaunay triangulation of a convex polygon with corners in counterclockwise
// order. The triangle on the side from the first to the last corner is the one with an empty
// circle. It leaves two polygons.
void cut_polygon(std::span<const GridPoint> points, std::span<const int64_t> corners,
                 Edges& edges) {
  if (corners.size() < 4) return;
  const auto point = [&](size_t corner) { return points[corners[corner]]; };
  const size_t last = corners.size() - 1;
  size_t apex = 1;
  for (size_t other = 2; other < last; ++other) {
    if (in_circle(point(0), point(apex), point(last), point(other))) apex = other;
  }
  if (apex > 1) add_edge(edges, corners[0], corners[apex]);
  if (apex + 1 < last) add_edge(edges, corners[apex], corners[last]);
  cut_polygon(points, corners.first(apex + 1), edges);
  cut_polygon(points, corners.subspan(apex), edges);
}

}  // namespace

std::vector<GridPoint> snap_to_grid(std::span<const double> points) {
  // From halves, since the extent itself may overflow.
  double low[2] = {kInfinity, kInfinity}, extent = 0;
  const auto above_low = [&](size_t i) { return points[i] / 2 - low[i % 2]; };
  for (size_t i = 0; i < points.size(); ++i) low[i % 2] = std::min(low[i % 2], points[i] / 2);
  for (size_t i = 0; i < points.size(); ++i) extent = std::max(extent, above_low(i));
  int exponent = 0;  // extent = mantissa 2^exponent with a mantissa in [1/2, 1)
  if (std::frexp(extent, &exponent) == 0.5) --exponent;
  const auto on_grid = [&](size_t i) {
    return static_cast<int32_t>(std::lround(std::ldexp(above_low(i), kGridBits - exponent)));
  };
  std::vector<GridPoint> snapped(points.size() / 2);
  for (size_t i = 0; i < snapped.size(); ++i) snapped[i] = {on_grid(2 * i), on_grid(2 * i + 1)};
  return snapped;
}

Coincidence find_coincidence(std::span<const GridPoint> points) {
  std::vector<int64_t> order(points.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return std::tie(points[a], a) < std::tie(points[b], b); });
  Coincidence found;
  for (size_t i = 1; i < order.size(); ++i) {
    const bool same = points[order[i - 1]] == points[order[i]];
    if (same && (found.second < 0 || order[i] < found.second)) found = {order[i - 1], order[i]};
  }
  return found;
}

std::vector<int64_t> delaunay_edges(std::span<const GridPoint> points) {
  using Diagram = boost::polygon::voronoi_diagram<double>;
  boost::polygon::voronoi_builder<int32_t> builder;
  for (const GridPoint& point : points) builder.insert_point(point.x, point.y);
  Diagram diagram;
  builder.construct(&diagram);

  Edges edges;
  const auto number = [](const Diagram::edge_type& edge) {
    return static_cast<int64_t>(edge.cell()->source_index());
  };
  for (const Diagram::edge_type& edge : diagram.edges()) {
    const int64_t i = number(edge), j = number(*edge.twin());
    if (i < j) edges.push_back({i, j});
  }
  // The library merges corners of cells whose coordinates agree to 128 units in the last place. The
  // cells around such a corner belong to points on one circle, or nearly. That polygon is cut with
  // exact arithmetic. It is convex, because directions between points of so coarse a grid differ by
  // more than the library's tolerance.
  std::vector<int64_t> corners;
  for (const Diagram::vertex_type& vertex : diagram.vertices()) {
    corners.clear();
    const Diagram::edge_type* const first = vertex.incident_edge();
    for (const Diagram::edge_type* edge = first;;) {
      corners.push_back(number(*edge));
      edge = edge->rot_next();
      if (edge == first) break;
    }
    std::rotate(corners.begin(), std::min_element(corners.begin(), corners.end()), corners.end());
    cut_polygon(points, corners, edges);
  }
  std::sort(edges.begin(), edges.end());
  std::vector<int64_t> flat;
  flat.reserve(2 * edges.size());
  for (const auto& edge : edges) flat.insert(flat.end(), edge.begin(), edge.end());
  return flat;
}

}  // namespace nsimplex::graph
