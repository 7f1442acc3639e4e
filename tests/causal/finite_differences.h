#pragma once

#include <functional>

#include "causal/matrix.h"
#include "support/random.h"

namespace nsimplex::causal::test {

/// Central differences of a function at a point, one coordinate after the other.
template <class Point>
Point finite_differences(const std::function<double(const Point&)>& function, const Point& point,
                         double step = 1e-5) {
  Point slopes = point;
  for (int64_t i = 0; i < point.size(); ++i) {
    Point moved = point;
    moved.data()[i] = point.data()[i] + step;
    const double above = function(moved);
    moved.data()[i] = point.data()[i] - step;
    slopes.data()[i] = (above - function(moved)) / (2 * step);
  }
  return slopes;
}

/// Numbers of [-size, size].
inline Matrix uniform_matrix(int64_t rows, int64_t columns, double size, RandomStream& random) {
  Matrix matrix(rows, columns);
  for (int64_t i = 0; i < matrix.size(); ++i) matrix.data()[i] = size * (2 * random.unit() - 1);
  return matrix;
}

}  // namespace nsimplex::causal::test
