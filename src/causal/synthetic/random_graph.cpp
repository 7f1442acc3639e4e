#include "causal/synthetic/random_graph.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "graph/generators.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

std::vector<int64_t> permutation(int64_t count, RandomStream& draws) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  for (int64_t left = count; left > 1; --left) {
    std::swap(numbers[static_cast<size_t>(left - 1)],
              numbers[static_cast<size_t>(draws.below(left))]);
  }
  return numbers;
}

// `count` different pairs i < j of all (Floyd's sampling), rising.
std::vector<int64_t> random_pairs(int64_t nodes, int64_t count, RandomStream& draws) {
  const int64_t all = nodes * (nodes - 1) / 2;
  std::unordered_set<int64_t> chosen;
  for (int64_t last = all - count; last < all; ++last) {
    const int64_t drawn = draws.below(last + 1);
    chosen.insert(chosen.contains(drawn) ? last : drawn);
  }
  std::vector<int64_t> numbers(chosen.begin(), chosen.end());
  std::sort(numbers.begin(), numbers.end());
  std::vector<int64_t> pairs;
  int64_t j = 1, first = 0;  // pairs (0, j), .., (j - 1, j) have the numbers from `first` on
  for (const int64_t number : numbers) {
    while (number >= first + j) first += j++;
    pairs.insert(pairs.end(), {number - first, j});
  }
  return pairs;
}

}  // namespace

std::vector<int64_t> random_dag(CausalGraph graph, int64_t nodes, int64_t degree, uint64_t seed) {
  RandomStream draws(seed);
  const std::vector<int64_t> rank = permutation(nodes, draws);
  std::vector<int64_t> edges =
      graph == CausalGraph::scale_free
          ? graph::preferential_attachment(nodes, degree, draws.bits())
          : random_pairs(nodes, std::min(degree * nodes, nodes * (nodes - 1) / 2), draws);
  for (size_t end = 0; end < edges.size(); end += 2) {
    const auto rank_of = [&](int64_t node) { return rank[static_cast<size_t>(node)]; };
    if (rank_of(edges[end]) > rank_of(edges[end + 1])) std::swap(edges[end], edges[end + 1]);
  }
  return edges;
}

}  // namespace nsimplex::causal
