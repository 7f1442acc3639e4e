#include "graph/laplacian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

#include "graph/eigenpairs.h"
#include "graph/view_of.h"

namespace nsimplex::graph {
namespace {

constexpr double kCloseVector = 1e-7;

Spectrum spectrum_of(const Tuples& graph, int64_t count) {
  return laplacian_spectrum(adjacency_of(graph.view()), 0, graph.node_offsets.back(), count);
}

// L v = value v, the vectors orthonormal, the signs as promised.
void expect_eigenvectors(const Tuples& graph, const Spectrum& spectrum) {
  const Adjacency rows = adjacency_of(graph.view());
  const int64_t count = std::ssize(spectrum.values), nodes = rows.nodes();
  const auto entry = [&](int64_t node, int64_t i) { return spectrum.vectors[node * count + i]; };
  for (int64_t i = 0; i < count; ++i) {
    double largest = 0, first = 0;
    for (int64_t node = 0; node < nodes; ++node) {
      largest = std::max(largest, std::abs(entry(node, i)));
    }
    for (int64_t node = 0; node < nodes; ++node) {
      double product = rows.degree(node) > 0 ? entry(node, i) : 0;
      for (const int64_t other : rows[node]) {
        product -= entry(other, i) / std::sqrt(double(rows.degree(node) * rows.degree(other)));
      }
      EXPECT_NEAR(product, spectrum.values[i] * entry(node, i), kCloseVector);
      if (first == 0 && std::abs(entry(node, i)) >= (1 - 1e-6) * largest) first = entry(node, i);
    }
    EXPECT_GT(first, 0) << "vector " << i;
    for (int64_t j = 0; j <= i; ++j) {
      double product = 0;
      for (int64_t node = 0; node < nodes; ++node) product += entry(node, i) * entry(node, j);
      EXPECT_NEAR(product, i == j, kCloseVector);
    }
  }
}

void expect_spectrum(const Tuples& graph, std::vector<double> expected, int64_t count) {
  std::sort(expected.begin(), expected.end());
  const Spectrum spectrum = spectrum_of(graph, count);
  ASSERT_EQ(std::ssize(spectrum.values), count);
  for (int64_t i = 0; i < count; ++i)
    EXPECT_NEAR(spectrum.values[i], expected[i], kCloseVector) << i;
  expect_eigenvectors(graph, spectrum);
}

// Fan Chung, Spectral Graph Theory, examples 1.1 to 1.5.
std::vector<double> chain_values(int64_t nodes) {
  std::vector<double> values;
  for (int64_t i = 0; i < nodes; ++i) {
    values.push_back(1 - std::cos(std::numbers::pi * double(i) / double(nodes - 1)));
  }
  return values;
}

std::vector<double> cycle_values(int64_t nodes) {
  std::vector<double> values;
  for (int64_t i = 0; i < nodes; ++i) {
    values.push_back(1 - std::cos(2 * std::numbers::pi * double(i) / double(nodes)));
  }
  return values;
}

TEST(Laplacian, OfSmallGraphsIsKnown) {
  expect_spectrum(chain(6), chain_values(6), 6);
  expect_spectrum(chain(7, true), cycle_values(7), 7);
  const Tuples star = Tuples::of(5, {0, 1, 0, 2, 0, 3, 0, 4}, 2, Symmetry::undirected);
  expect_spectrum(star, {0, 1, 1, 1, 2}, 5);
  const Tuples complete = Tuples::of(4, {0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3});
  expect_spectrum(complete, {0, 4 / 3., 4 / 3., 4 / 3.}, 4);
  expect_spectrum(Tuples::of(3, {}), {0, 0, 0}, 2);
  EXPECT_TRUE(spectrum_of(chain(3), 0).values.empty());
}

TEST(Laplacian, OfLongChainsIsKnown) { expect_spectrum(chain(3000), chain_values(3000), 6); }

TEST(Laplacian, HasRepeatedEigenvaluesAsOftenAsTheyAre) {
  expect_spectrum(chain(1000, true), cycle_values(1000), 8);
  // 12 cycles of 50 nodes: 12 zeros, then 24 of the next.
  Tuples cycles = Tuples::of(600, {}, 2, Symmetry::undirected);
  std::vector<double> values;
  for (int64_t cycle = 0; cycle < 12; ++cycle) {
    for (const int64_t node : chain(50, true).values) cycles.values.push_back(50 * cycle + node);
    const auto own = cycle_values(50);
    values.insert(values.end(), own.begin(), own.end());
  }
  cycles.tuple_offsets = {0, std::ssize(cycles.values) / 2};
  expect_spectrum(cycles, values, 20);
}

// A graph that no sparse factor stays thin on: every node has ten neighbours anywhere.
Tuples random_graph(int64_t nodes) {
  std::mt19937 generator(7);
  std::vector<int64_t> edges;
  for (int64_t node = 1; node < nodes; ++node) {
    for (int i = 0; i < 5; ++i) {
      edges.insert(edges.end(), {static_cast<int64_t>(generator() % node), node});
    }
  }
  return Tuples::of(nodes, edges);
}

TEST(Laplacian, OfRandomGraphsIsThatOfTheDenseMatrix) {
  const int64_t nodes = kDenseRows + 150;
  const Tuples graph = random_graph(nodes);
  // More than half of the spectrum: computed densely.
  expect_spectrum(graph, spectrum_of(graph, nodes / 2 + 1).values, 5);
}

TEST(Laplacian, OfAPartOfABatchIsItsOwn) {
  Tuples batch = chain(4);
  batch.node_offsets = {0, 9};
  for (const int64_t node : chain(5, true).values) batch.values.push_back(4 + node);
  const Adjacency rows = adjacency_of(batch.view());
  EXPECT_EQ(laplacian_spectrum(rows, 0, 4, 4).vectors, spectrum_of(chain(4), 4).vectors);
  EXPECT_EQ(laplacian_spectrum(rows, 4, 9, 3).vectors, spectrum_of(chain(5, true), 3).vectors);
}

TEST(Laplacian, GapIsTheSecondValue) {
  const auto gap = [](const Tuples& graph) {
    return laplacian_gap(adjacency_of(graph.view()), 0, graph.node_offsets.back());
  };
  EXPECT_NEAR(gap(chain(2)), 2, 1e-12);
  EXPECT_NEAR(gap(chain(100)), chain_values(100)[1], 1e-12);
  for (const int64_t nodes : {257, 3000}) {  // by bisection
    EXPECT_NEAR(gap(chain(nodes)) / chain_values(nodes)[1], 1, 1e-6);
    EXPECT_NEAR(gap(chain(nodes, true)) / cycle_values(nodes)[1], 1, 1e-6);  // a double one
  }
  std::vector<int64_t> star, torus;
  for (int64_t node = 1; node < 400; ++node) star.insert(star.end(), {0, node});
  for (int64_t node = 0; node < 400; ++node) {  // 20 x 20
    const int64_t right = node / 20 * 20 + (node + 1) % 20, below = (node + 20) % 400;
    torus.insert(torus.end(), {node, right, node, below});
  }
  EXPECT_NEAR(gap(Tuples::of(400, star)), 1, 1e-9);
  EXPECT_NEAR(gap(Tuples::of(400, torus)), (1 - std::cos(std::numbers::pi / 10)) / 2, 1e-11);
  // A wheel: a cycle and a hub. With z the first vector of the cycle, L z = (1 - 2/3 cos) z; a
  // thousand eigenvalues lie as close behind as those of the cycle.
  const int64_t rim = 4000;
  Tuples wheel = chain(rim, true);
  for (int64_t node = 0; node < rim; ++node) wheel.values.insert(wheel.values.end(), {node, rim});
  wheel = Tuples::of(rim + 1, wheel.values);
  const double angle = 2 * std::numbers::pi / double(rim);
  EXPECT_NEAR(gap(wheel), 1 - 2 / 3. * std::cos(angle), 1e-11);
}

}  // namespace
}  // namespace nsimplex::graph
