#include "graph/delaunay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <set>

#include "graph/random_graphs.h"
#include "support/random.h"

namespace nsimplex::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Points = std::vector<GridPoint>;
using EdgeSet = std::set<std::pair<int64_t, int64_t>>;
using Wide = __int128;

// Twice the area of a triangle, positive where a, b, c turn left.
int64_t turn(GridPoint a, GridPoint b, GridPoint c) {
  return (int64_t{b.x} - a.x) * (c.y - a.y) - (int64_t{b.y} - a.y) * (c.x - a.x);
}

// The determinant of rows (x, y, x^2 + y^2, 1) of four points: positive where d is inside the
// circle of a, b, c, which turn left; 0 on it.
Wide inside(GridPoint a, GridPoint b, GridPoint c, GridPoint d) {
  const auto lift = [](GridPoint p) { return Wide{p.x} * p.x + Wide{p.y} * p.y; };
  return lift(a) * turn(b, c, d) - lift(b) * turn(a, c, d) + lift(c) * turn(a, b, d) -
         lift(d) * turn(a, b, c);
}

// Edges of triangles whose circles are empty: those with no other point on the circle are in every
// Delaunay triangulation, the others may be.
struct Allowed {
  EdgeSet certain, possible;
};

Allowed edges_by_definition(const Points& points) {
  Allowed allowed;
  const auto n = static_cast<int64_t>(points.size());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) {
      for (int64_t k = j + 1; k < n; ++k) {
        const int64_t area = turn(points[i], points[j], points[k]);
        if (area == 0) continue;
        bool empty = true, alone = true;
        for (int64_t other = 0; other < n && empty; ++other) {
          if (other == i || other == j || other == k) continue;
          const Wide where = inside(points[i], points[j], points[k], points[other]);
          empty = area > 0 ? where <= 0 : where >= 0;
          alone = alone && where != 0;
        }
        if (!empty) continue;
        for (const auto& edge : {std::pair{i, j}, std::pair{i, k}, std::pair{j, k}}) {
          allowed.possible.insert(edge);
          if (alone) allowed.certain.insert(edge);
        }
      }
    }
  }
  return allowed;
}

// Points through which a line goes that has all others on one side.
int64_t points_on_hull(const Points& points) {
  int64_t count = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    bool on_hull = false;
    for (size_t j = 0; j < points.size() && !on_hull; ++j) {
      on_hull = i != j && std::ranges::all_of(points, [&](const GridPoint& other) {
                  return turn(points[i], points[j], other) >= 0;
                });
    }
    count += on_hull;
  }
  return count;
}

bool cross(const Points& points, const std::pair<int64_t, int64_t>& one,
           const std::pair<int64_t, int64_t>& other) {
  const auto sign = [&](int64_t a, int64_t b, int64_t c) {
    const int64_t area = turn(points[a], points[b], points[c]);
    return (area > 0) - (area < 0);
  };
  return sign(one.first, one.second, other.first) * sign(one.first, one.second, other.second) < 0 &&
         sign(other.first, other.second, one.first) * sign(other.first, other.second, one.second) <
             0;
}

// All that a Delaunay triangulation of points not on one line is.
void expect_delaunay(const Points& points) {
  const std::vector<int64_t> flat = delaunay_edges(points);
  std::vector<std::pair<int64_t, int64_t>> edges;
  for (size_t i = 0; i < flat.size(); i += 2) edges.emplace_back(flat[i], flat[i + 1]);
  EXPECT_TRUE(std::ranges::is_sorted(edges));
  const EdgeSet found(edges.begin(), edges.end());
  ASSERT_EQ(found.size(), edges.size());
  const Allowed allowed = edges_by_definition(points);
  EXPECT_TRUE(std::ranges::includes(found, allowed.certain));
  EXPECT_TRUE(std::ranges::includes(allowed.possible, found));
  EXPECT_EQ(std::ssize(edges), 3 * std::ssize(points) - 3 - points_on_hull(points));  // Euler
  for (size_t i = 0; i < edges.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(cross(points, edges[i], edges[j]));
  }
}

// Different points, their coordinates below `side`, times `step`.
Points random_grid_points(int64_t count, int64_t side, int32_t step, uint64_t seed) {
  RandomStream draws(seed);
  std::set<GridPoint> points;
  while (std::ssize(points) < count) {
    const auto x = static_cast<int32_t>(draws.below(side)),
               y = static_cast<int32_t>(draws.below(side));
    points.insert({x * step, y * step});
  }
  return {points.begin(), points.end()};
}

TEST(Delaunay, OfRandomPoints) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    expect_delaunay(random_grid_points(30, int64_t{1} << kGridBits, 1, seed));
  }
}

// Most quadruples of a small grid that can be on one circle or line are.
TEST(Delaunay, OfPointsOnCirclesAndLines) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    expect_delaunay(random_grid_points(20, 6, 1, seed));
    expect_delaunay(random_grid_points(20, 6, 1 << 19, seed));
  }
  Points square;
  for (int32_t x = 0; x < 6; ++x) {
    for (int32_t y = 0; y < 6; ++y) square.push_back({x << 19, y << 19});
  }
  expect_delaunay(square);
  // All integer points at distance 5 * 13 * 17 of a centre: on one circle, alone and with others.
  constexpr int32_t kRadius = 1105;
  Points circle;
  for (int32_t x = -kRadius; x <= kRadius; ++x) {
    const auto y = static_cast<int32_t>(std::lround(std::sqrt(kRadius * kRadius - x * x)));
    if (x * x + y * y != kRadius * kRadius) continue;
    for (const int32_t side : {y, -y}) circle.push_back({1000 * (x + 1200), 1000 * (side + 1200)});
    if (y == 0) circle.pop_back();
  }
  EXPECT_GT(circle.size(), 50u);
  expect_delaunay(circle);
  circle.push_back({1200000, 1200000});
  expect_delaunay(circle);
}

// Circles that are huge, or the same but for the last bit of a coordinate.
TEST(Delaunay, OfPointsThatNearlyAre) {
  for (const int32_t step : {1, 3, 1 << 10, 1 << 16}) {
    Points parabola, both;
    for (int32_t i = 0; i < 32; ++i) {
      parabola.push_back({i * step, i * i});
      both.push_back({i * step, i * i});
      both.push_back({i * step + 1, 1024 - i * i});
    }
    expect_delaunay(parabola);
    expect_delaunay(both);
  }
  Points line;  // on one, but for two
  for (int32_t i = 0; i < 20; ++i) line.push_back({i * 200000, i * 200000});
  ++line[7].x;
  --line[13].y;
  expect_delaunay(line);
  Points round;
  for (int32_t i = 0; i < 40; ++i) {
    const double angle = 2 * std::numbers::pi * i / 40, radius = 1 << 21;
    round.push_back({static_cast<int32_t>(std::lround(radius * (1 + std::cos(angle)))),
                     static_cast<int32_t>(std::lround(radius * (1 + std::sin(angle))))});
  }
  expect_delaunay(round);
  for (uint64_t seed = 0; seed < 10; ++seed) {  // clusters, far apart
    Points clusters = random_grid_points(12, 5, 1, seed);
    for (const GridPoint& point : random_grid_points(12, 5, 1, seed + 100)) {
      clusters.push_back({point.x + (1 << kGridBits) - 5, point.y + (1 << 20)});
    }
    expect_delaunay(clusters);
  }
}

TEST(Delaunay, OfFewPointsAndOfALine) {
  EXPECT_THAT(delaunay_edges({}), IsEmpty());
  EXPECT_THAT(delaunay_edges(Points{{5, 7}}), IsEmpty());
  EXPECT_THAT(delaunay_edges(Points{{5, 7}, {1, 1}}), ElementsAre(0, 1));
  EXPECT_THAT(delaunay_edges(Points{{4, 2}, {0, 0}, {8, 4}, {2, 1}}),
              ElementsAre(0, 2, 0, 3, 1, 3));
  EXPECT_THAT(delaunay_edges(Points{{3, 9}, {3, 0}, {3, 4}}), ElementsAre(0, 2, 1, 2));
  EXPECT_THAT(delaunay_edges(Points{{0, 0}, {4, 0}, {0, 4}}), ElementsAre(0, 1, 0, 2, 1, 2));
  // Of the two diagonals of a square that of the lowest number, wherever it lies.
  EXPECT_THAT(delaunay_edges(Points{{0, 0}, {4, 0}, {4, 4}, {0, 4}}),
              ElementsAre(0, 1, 0, 2, 0, 3, 1, 2, 2, 3));
  EXPECT_THAT(delaunay_edges(Points{{4, 0}, {4, 4}, {0, 4}, {0, 0}}),
              ElementsAre(0, 1, 0, 2, 0, 3, 1, 2, 2, 3));
}

TEST(SnapToGrid, KeepsWhatIsOnIt) {
  constexpr int32_t kAll = 1 << kGridBits;
  EXPECT_EQ(snap_to_grid(std::vector<double>{0.25, 0.5, 0.75, 1.5, 0.25 + 0x1p-22, 0.5}),
            (Points{{0, 0}, {kAll / 2, kAll}, {1, 0}}));
  EXPECT_EQ(snap_to_grid(std::vector<double>{-2, 1, 3, 1}), (Points{{0, 0}, {kAll / 8 * 5, 0}}));
  EXPECT_EQ(snap_to_grid(std::vector<double>{7, 7}), (Points{{0, 0}}));
  EXPECT_EQ(snap_to_grid(std::vector<double>{1e308, 0, -1e308, 1e-308}),
            (Points{{snap_to_grid(std::vector<double>{0, 0, 1e308, 0})[1].x, 0}, {0, 0}}));
  EXPECT_THAT(snap_to_grid({}), IsEmpty());
}

TEST(SnapToGrid, OfRandomPointsMovesNone) {
  const PointSets sets = random_points(3, 40, 40, 5);
  const std::vector<double> points(sets.coordinates.begin(), sets.coordinates.begin() + 80);
  const Points snapped = snap_to_grid(points);
  for (size_t i = 0; i < snapped.size(); ++i) {
    EXPECT_EQ(snapped[i].x - snapped[0].x, (points[2 * i] - points[0]) * 0x1p22);
    EXPECT_EQ(snapped[i].y - snapped[0].y, (points[2 * i + 1] - points[1]) * 0x1p22);
  }
}

TEST(FindCoincidence, NamesTheFirst) {
  EXPECT_EQ(find_coincidence(Points{{1, 2}, {2, 1}, {1, 3}}).second, -1);
  const Coincidence found =
      find_coincidence(Points{{9, 9}, {1, 1}, {5, 5}, {9, 9}, {1, 1}, {5, 5}});
  EXPECT_EQ(found.first, 0);
  EXPECT_EQ(found.second, 3);
}

}  // namespace
}  // namespace nsimplex::graph
