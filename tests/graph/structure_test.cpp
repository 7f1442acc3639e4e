#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nsimplex/graph.h>

#include "error_of.h"
#include "support/tensors.h"

namespace nsimplex {
namespace {

using test::numbers;

// A triangle with a tail, and a chain of three.
TupleBatch triangle_and_chain() {
  const at::Tensor tuples = numbers({0, 1, 0, 2, 1, 2, 2, 3, 4, 5, 5, 6}).view({-1, 2});
  return tuple_batch(tuples, numbers({0, 4, 6}), numbers({0, 4, 7}), Symmetry::undirected);
}

TEST(Structure, OfABatchIsThatOfItsGraphs) {
  const TupleBatch batch = triangle_and_chain();
  const Adjacency rows = adjacency(batch);
  EXPECT_TRUE(rows.offsets.equal(numbers({0, 2, 4, 7, 8, 9, 11, 12})));
  EXPECT_TRUE(rows.neighbours.equal(numbers({1, 2, 0, 2, 0, 1, 3, 2, 5, 4, 6, 5})));
  EXPECT_TRUE(node_degrees(batch).equal(numbers({2, 2, 3, 1, 1, 2, 1})));
  EXPECT_TRUE(connected_components(batch).equal(numbers({0, 0, 0, 0, 1, 1, 1})));
}

TEST(Structure, SimplicesAreBatchesOfEverySize) {
  const std::vector<TupleBatch> all = simplices(triangle_and_chain(), 4);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_TRUE(all[0].tuples.equal(at::arange(7).view({7, 1})));
  EXPECT_TRUE(all[1].tuples.equal(triangle_and_chain().tuples));
  EXPECT_TRUE(all[2].tuples.equal(numbers({0, 1, 2}).view({1, 3})));
  EXPECT_TRUE(all[2].tuple_offsets.equal(numbers({0, 1, 1})));
  EXPECT_EQ(all[3].tuples.sizes(), (at::IntArrayRef{0, 4}));
  for (const TupleBatch& batch : all) check_tuples(batch);
  EXPECT_EQ(error_of([] { simplices(triangle_and_chain(), 0); }),
            "[simplices] largest: expected 1 to 64, got 0");
}

TEST(Structure, CliquesOfComponentsAndOfLabels) {
  // A chain of four and an edge become cliques of six and one pairs.
  const TupleBatch chains = tuple_batch(numbers({0, 1, 1, 2, 2, 3, 5, 6}).view({-1, 2}),
                                        numbers({0, 3, 4}), numbers({0, 5, 7}));
  const TupleBatch cliques = component_cliques(chains);
  check_tuples(cliques);
  EXPECT_EQ(cliques.symmetry, Symmetry::undirected);
  EXPECT_TRUE(
      cliques.tuples.equal(numbers({0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3, 5, 6}).view({-1, 2})));
  EXPECT_TRUE(cliques.tuple_offsets.equal(numbers({0, 6, 7})));
  EXPECT_TRUE(component_cliques(cliques).tuples.equal(cliques.tuples));
  // Equal labels of different graphs are no part.
  const TupleBatch parts = label_cliques(numbers({9, -4, 9, 9, 5, 9}), numbers({0, 4, 6}));
  EXPECT_TRUE(parts.tuples.equal(numbers({0, 2, 0, 3, 2, 3}).view({-1, 2})));
  EXPECT_TRUE(parts.tuple_offsets.equal(numbers({0, 3, 3})));
  EXPECT_EQ(error_of([] { label_cliques(numbers({1, 2}), numbers({0, 3})); }),
            "[label_cliques] node_offsets: expected the number of nodes, 2, last, got 3");
}

TEST(Structure, LineGraphsStayApart) {
  const LineGraph lines = line_graph(triangle_and_chain());
  EXPECT_TRUE(
      lines.batch.tuples.equal(numbers({0, 1, 0, 2, 1, 2, 1, 3, 2, 3, 4, 5}).view({-1, 2})));
  EXPECT_TRUE(lines.batch.tuple_offsets.equal(numbers({0, 5, 6})));
  EXPECT_TRUE(lines.batch.node_offsets.equal(numbers({0, 4, 6})));
  EXPECT_TRUE(lines.shared.equal(numbers({0, 1, 2, 2, 2, 5})));
  check_tuples(lines.batch);
  EXPECT_EQ(error_of([] { line_graph(with_loops(triangle_and_chain()).batch); }),
            "[line_graph] batch: expected no loops, got one in row 0");
  EXPECT_EQ(error_of([] { line_graph(all_orders(triangle_and_chain()).batch); }),
            "[line_graph] batch: expected an undirected graph");
  EXPECT_EQ(error_of([] { line_graph(complete_tuples(numbers({2}), 3)); }),
            "[line_graph] batch: expected a graph (order 2), got order 3");
}

TEST(Structure, LaplacianVectorsFillWhatAGraphHas) {
  const auto [values, vectors] = laplacian_eigenvectors(triangle_and_chain(), 4);
  ASSERT_EQ(values.sizes(), (at::IntArrayRef{2, 4}));
  ASSERT_EQ(vectors.sizes(), (at::IntArrayRef{7, 4}));
  // The chain of three: values 0, 1, 2 and the first vector D^1/2 1 / |.|.
  EXPECT_TRUE(values[1].allclose(at::tensor({0., 1., 2., 0.}, at::kDouble), 0, 1e-12));
  EXPECT_TRUE(vectors.slice(0, 4).select(1, 0).allclose(
      at::tensor({0.5, std::sqrt(0.5), 0.5}, at::kDouble)));
  EXPECT_TRUE(vectors.slice(0, 4).select(1, 3).eq(0).all().item<bool>());
}

TEST(Structure, RefusesABatchThatWasNotChecked) {
  const TupleBatch bad{numbers({0, 9}).view({1, 2}), numbers({0, 1}), numbers({0, 2})};
  const std::string why = " tuples: expected nodes 0 to 1 in graph 0, got 9 in row 0";
  EXPECT_EQ(error_of([&] { adjacency(bad); }), "[adjacency]" + why);
  EXPECT_EQ(error_of([&] { node_degrees(bad); }), "[node_degrees]" + why);
  EXPECT_EQ(error_of([&] { connected_components(bad); }), "[connected_components]" + why);
  EXPECT_EQ(error_of([&] { laplacian_eigenvectors(bad, 1); }), "[laplacian_eigenvectors]" + why);
  EXPECT_EQ(error_of([&] { simplices(bad, 1); }), "[simplices]" + why);
  EXPECT_EQ(error_of([&] { line_graph(bad); }), "[line_graph]" + why);
}

}  // namespace
}  // namespace nsimplex
