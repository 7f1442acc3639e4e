// Draws graphs that grow by preferential attachment, and sets of random points.

#include "graph/random_graphs.h"

#include <algorithm>
#include <cmath>

#include "graph/delaunay.h"
#include "support/random.h"

namespace nsimplex::graph {
std::vector<int64_t> preferential_attachment(int64_t nodes, int64_t links, uint64_t seed) {
  std::vector<int64_t> edges;
  if (nodes <= links) return edges;
  edges.reserve(2 * links * (nodes - links));
  RandomStream draws(seed);
  std::vector<int64_t> targets;
  for (int64_t node = links; node < nodes; ++node) {
    targets.clear();
    // A uniform end of a uniform edge is a node in proportion to its degree.
    const auto ends = static_cast<int64_t>(edges.size());
    while (static_cast<int64_t>(targets.size()) < links) {
      const int64_t target =
          node == links ? static_cast<int64_t>(targets.size()) : edges[draws.below(ends)];
      if (std::find(targets.begin(), targets.end(), target) == targets.end()) {
        targets.push_back(target);
      }
    }
    std::sort(targets.begin(), targets.end());
    for (const int64_t target : targets) edges.insert(edges.end(), {target, node});
  }
  return edges;
}

PointSets random_points(int64_t sets, int64_t least, int64_t most, uint64_t seed) {
  PointSets result;
  std::vector<GridPoint> points;
  for (int64_t set = 0; set < sets; ++set) {
    RandomStream draws(random_bits(seed, static_cast<uint64_t>(set)));
    points.resize(least + draws.below(most - least + 1));
    const auto draw = [&] {
      for (GridPoint& point : points) {
        point.x = static_cast<int32_t>(draws.below(int64_t{1} << kGridBits));
        point.y = static_cast<int32_t>(draws.below(int64_t{1} << kGridBits));
      }
    };
    do {
      draw();
    } while (find_coincidence(points).second >= 0);
    for (const GridPoint& point : points) {
      result.coordinates.push_back(std::ldexp(static_cast<float>(point.x), -kGridBits));
      result.coordinates.push_back(std::ldexp(static_cast<float>(point.y), -kGridBits));
    }
    result.offsets.push_back(result.offsets.back() + std::ssize(points));
  }
  return result;
}

}  // namespace nsimplex::graph
