#include "graph/adjacency.h"

#include <numeric>

#include "graph/tuple_lists.h"

namespace nsimplex::graph {
namespace {

// Disjoint sets with path halving; the lowest node of a set stands for it.
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

}  // namespace nsimplex::graph
