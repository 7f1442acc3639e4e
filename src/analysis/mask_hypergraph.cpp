// Builds attention masks as hypergraphs, and computes their distances and spectral gaps.

#include "analysis/mask_hypergraph.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "graph/laplacian.h"

namespace nsimplex::analysis {
namespace {

// keys_of(row) returns the keys that may follow a row (i, j1, ..) of a query.
MaskRows grow(
    int64_t nodes, int64_t order,
    const std::function<const std::vector<int64_t>&(const std::vector<int64_t>&)>& keys_of) {
  MaskRows mask;
  mask.order = order;
  mask.row_offsets = {0};
  std::vector<int64_t> row;
  const std::function<void()> extend = [&] {
    if (std::ssize(row) == order + 1) {
      mask.values.insert(mask.values.end(), row.begin(), row.end());
      return;
    }
    for (const int64_t key : keys_of(row)) {
      row.push_back(key);
      extend();
      row.pop_back();
    }
  };
  for (int64_t query = 0; query < nodes; ++query) {
    row.assign(1, query);
    extend();
    mask.row_offsets.push_back(std::ssize(mask.values) / (order + 1));
  }
  mask.all_rows = {0, mask.row_offsets.back()};
  mask.all_nodes = {0, nodes};
  return mask;
}

}  // namespace

KeySets window_keys(int64_t nodes, int64_t width) {
  KeySets keys(nodes);
  for (int64_t i = 0; i < nodes; ++i) {
    for (int64_t j = std::max<int64_t>(0, i - width + 1); j <= i; ++j) keys[i].push_back(j);
  }
  return keys;
}

KeySets band_keys(int64_t nodes, int64_t reach) {
  KeySets keys(nodes);
  for (int64_t i = 0; i < nodes; ++i) {
    const int64_t last = std::min(nodes - 1, i + reach);
    for (int64_t j = std::max<int64_t>(0, i - reach); j <= last; ++j) keys[i].push_back(j);
  }
  return keys;
}

KeySets random_keys(int64_t nodes, int64_t count, RandomStream& random) {
  KeySets keys(nodes);
  for (int64_t i = 0; i < nodes; ++i) {
    std::vector<int64_t>& own = keys[i];
    own.push_back(i);
    while (std::ssize(own) < std::min(count, nodes)) {
      const int64_t key = random.below(nodes);
      if (std::ranges::find(own, key) == own.end()) own.push_back(key);
    }
    std::ranges::sort(own);
  }
  return keys;
}

MaskRows product_mask(const KeySets& keys, int64_t order) {
  return grow(std::ssize(keys), order,
              [&](const auto& row) -> const std::vector<int64_t>& { return keys[row.front()]; });
}

MaskRows path_mask(const KeySets& keys, int64_t order) {
  return grow(std::ssize(keys), order,
              [&](const auto& row) -> const std::vector<int64_t>& { return keys[row.back()]; });
}

namespace {

using graph::Adjacency;

// Pairs (from, to) as compressed rows, without repetitions.
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

// Distances of the nodes that are reached. Afterwards `queue` holds these nodes, the farthest last.
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
