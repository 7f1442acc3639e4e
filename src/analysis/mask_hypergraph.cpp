#include "analysis/mask_hypergraph.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "graph/laplacian.h"

namespace nsimplex::analysis {
namespace {

using graph::Adjacency;

// Pairs (from, to) as compressed rows, each once.
Adjacency compress(std::vector<std::pair<int64_t, int64_t>> pairs, int64_t nodes) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  Adjacency rows{std::vector<int64_t>(nodes + 1, 0), {}};
  rows.neighbours.reserve(pairs.size());
  for (const auto& pair : pairs) {
    ++rows.offsets[pair.first + 1];
    rows.neighbours.push_back(pair.second);
  }
  std::partial_sum(rows.offsets.begin(), rows.offsets.end(), rows.offsets.begin());
  return rows;
}

// Distances of the nodes that are reached; `queue` holds these afterwards, the farthest last.
void search(const Adjacency& neighbours, int64_t start, std::vector<int64_t>& distances,
            std::vector<int64_t>& queue) {
  queue.assign(1, start);
  distances[start] = 0;
  for (size_t next = 0; next < queue.size(); ++next) {
    const int64_t node = queue[next];
    for (const int64_t other : neighbours[node]) {
      if (distances[other] >= 0) continue;
      distances[other] = distances[node] + 1;
      queue.push_back(other);
    }
  }
}

}  // namespace

MaskHypergraph mask_hypergraph(const graph::TupleView& simplices) {
  const graph::Rows& rows = simplices.tuples;
  const bool directed = simplices.symmetry != Symmetry::undirected;
  MaskHypergraph result;
  result.loops.assign(simplices.nodes(), 0);
  std::vector<std::pair<int64_t, int64_t>> pairs;
  pairs.reserve(rows.count * std::max<int64_t>(rows.width - 1, 0));
  for (int64_t row = 0; row < rows.count; ++row) {
    const auto simplex = rows[row];
    const size_t targets = directed ? std::min<size_t>(1, simplex.size()) : simplex.size();
    for (size_t target = 0; target < targets; ++target) {
      for (size_t source = 0; source < simplex.size(); ++source) {
        if (source == target) continue;
        if (simplex[source] == simplex[target]) {
          result.loops[simplex[target]] = 1;
        } else {
          pairs.emplace_back(simplex[source], simplex[target]);
        }
      }
    }
  }
  result.receivers = compress(std::move(pairs), simplices.nodes());
  result.skeleton = graph::adjacency_of(simplices);
  return result;
}

std::vector<int64_t> distances_from(const Adjacency& neighbours, int64_t node) {
  std::vector<int64_t> distances(neighbours.nodes(), -1), queue;
  search(neighbours, node, distances, queue);
  return distances;
}

Extent extent_of(const Adjacency& neighbours, int64_t first, int64_t last) {
  Extent extent;
  std::vector<int64_t> distances(neighbours.nodes(), -1), queue;
  for (int64_t node = first; node < last; ++node) {
    search(neighbours, node, distances, queue);
    const bool all = std::ssize(queue) == last - first;
    extent.eccentricities.push_back(all ? distances[queue.back()] : -1);
    for (const int64_t reached : queue) distances[reached] = -1;
  }
  bool every = true;
  for (const int64_t each : extent.eccentricities) {
    every = every && each >= 0;
    if (each >= 0 && (extent.radius < 0 || each < extent.radius)) extent.radius = each;
    extent.diameter = std::max(extent.diameter, each);
  }
  if (!every) extent.diameter = -1;
  return extent;
}

double spectral_gap(const Adjacency& skeleton, int64_t first, int64_t last) {
  if (last - first < 2) return std::numeric_limits<double>::quiet_NaN();
  std::vector<int64_t> distances(skeleton.nodes(), -1), queue;
  search(skeleton, first, distances, queue);
  if (std::ssize(queue) < last - first) return 0;
  return graph::laplacian_gap(skeleton, first, last);
}

}  // namespace nsimplex::analysis
