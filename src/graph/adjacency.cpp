// Computes neighbours, connected components, cliques and line graphs of a batch of tuples.

#include "graph/adjacency.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "graph/tuple_lists.h"

namespace nsimplex::graph {
namespace {

// Disjoint sets with path halving. The lowest node of a set represents it.
class DisjointSets {
 public:
  explicit DisjointSets(int64_t nodes) : parent_(nodes) {
    std::iota(parent_.begin(), parent_.end(), int64_t{0});
  }

  int64_t find(int64_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }

  void join(int64_t a, int64_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<int64_t> parent_;
};

}  // namespace

Adjacency adjacency_of(const TupleView& batch) {
  Adjacency result{std::vector<int64_t>(batch.nodes() + 1, 0), {}};
  if (batch.tuples.width < 2) return result;
  const TupleList pairs = project(batch, 2, Symmetry::loop_free);
  result.neighbours.reserve(pairs.count());
  for (size_t i = 0; i < pairs.values.size(); i += 2) {
    ++result.offsets[pairs.values[i] + 1];
    result.neighbours.push_back(pairs.values[i + 1]);
  }
  std::partial_sum(result.offsets.begin(), result.offsets.end(), result.offsets.begin());
  return result;
}

std::vector<int64_t> components_of(const TupleView& batch) {
  DisjointSets sets(batch.nodes());
  for (int64_t row = 0; row < batch.tuples.count; ++row) {
    const auto tuple = batch.tuples[row];
    for (size_t i = 1; i < tuple.size(); ++i) sets.join(tuple[0], tuple[i]);
  }
  std::vector<int64_t> labels(batch.nodes());
  int64_t next = 0;
  for (int64_t node = 0; node < batch.nodes(); ++node) {
    const int64_t lowest = sets.find(node);
    labels[node] = lowest == node ? next++ : labels[lowest];
  }
  return labels;
}

namespace {

class CliqueSearch {
 public:
  CliqueSearch(const Adjacency& graph, int64_t largest) : largest_(largest), later_(graph.nodes()) {
    const auto before = [&](int64_t a, int64_t b) {
      return std::pair(graph.degree(a), a) < std::pair(graph.degree(b), b);
    };
    for (int64_t node = 0; node < graph.nodes(); ++node) {
      std::ranges::copy_if(graph[node], std::back_inserter(later_[node]),
                           [&](int64_t other) { return before(node, other); });
    }
    for (int64_t size = 1; size <= largest; ++size) found_.push_back({size, {}, {}});
  }

  std::vector<TupleList> run() {
    for (size_t node = 0; node < later_.size(); ++node) {
      grow(static_cast<int64_t>(node), later_[node]);
    }
    for (TupleList& list : found_) list = sorted_unique(list, std::ssize(later_));
    return std::move(found_);
  }

 private:
  // Adds `node`, a neighbour of the whole clique. `candidates` are common neighbours of higher
  // rank, ascending by number.
  void grow(int64_t node, const std::vector<int64_t>& candidates) {
    clique_.push_back(node);
    std::vector<int64_t> ascending = clique_;
    std::sort(ascending.begin(), ascending.end());
    found_[clique_.size() - 1].add(ascending, -1);
    if (std::ssize(clique_) < largest_) {
      std::vector<int64_t> shared;
      for (const int64_t next : candidates) {
        shared.clear();
        std::ranges::set_intersection(candidates, later_[next], std::back_inserter(shared));
        grow(next, shared);
      }
    }
    clique_.pop_back();
  }

  int64_t largest_;
  std::vector<std::vector<int64_t>> later_;  // neighbours of higher rank
  std::vector<int64_t> clique_;
  std::vector<TupleList> found_;
};

}  // namespace

std::vector<TupleList> cliques_of(const Adjacency& graph, int64_t largest) {
  return CliqueSearch(graph, largest).run();
}

TupleList line_graph_of(const Rows& edges, int64_t nodes) {
  // Rows of the edges at every node, ascending.
  std::vector<int64_t> offsets(nodes + 1, 0);
  for (int64_t i = 0; i < 2 * edges.count; ++i) ++offsets[edges.values[i] + 1];
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<int64_t> at_node(2 * edges.count), next(offsets.begin(), offsets.end() - 1);
  for (int64_t i = 0; i < 2 * edges.count; ++i) at_node[next[edges.values[i]]++] = i / 2;

  TupleList list{2, {}, {}};
  for (int64_t node = 0; node < nodes; ++node) {
    for (int64_t a = offsets[node]; a < offsets[node + 1]; ++a) {
      for (int64_t b = a + 1; b < offsets[node + 1]; ++b) {
        list.add(std::array{at_node[a], at_node[b]}, node);
      }
    }
  }
  return sorted_unique(list, edges.count);
}

TupleList label_cliques(std::span<const int64_t> labels, std::span<const int64_t> node_offsets) {
  TupleList pairs{2, {}, {}};
  std::vector<int64_t> order, next(labels.size(), -1);  // the node after each that has its label
  for (size_t graph = 0; graph + 1 < node_offsets.size(); ++graph) {
    order.resize(node_offsets[graph + 1] - node_offsets[graph]);
    std::iota(order.begin(), order.end(), node_offsets[graph]);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return std::pair(labels[a], a) < std::pair(labels[b], b);
    });
    for (size_t i = 1; i < order.size(); ++i) {
      if (labels[order[i - 1]] == labels[order[i]]) next[order[i - 1]] = order[i];
    }
  }
  for (int64_t node = 0; node < std::ssize(next); ++node) {
    for (int64_t other = next[node]; other >= 0; other = next[other]) {
      pairs.add(std::array{node, other}, -1);
    }
  }
  return pairs;
}

}  // namespace nsimplex::graph
