#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/graph.h>

#include "error_of.h"
#include "support/tensors.h"

namespace nsimplex {
namespace {

using test::numbers;

at::Tensor rows(std::vector<int64_t> values, int64_t width = 2) {
  return at::tensor(values, at::kLong).view({-1, width});
}

void expect_equal(const at::Tensor& got, const at::Tensor& expected) {
  EXPECT_TRUE(got.equal(expected)) << got << "\n" << expected;
}

TEST(EdgeTuples, HaveBothDirectionsAndLoops) {
  const at::Tensor edges = rows({2, 0, 1, 1, 0, 1});
  const DerivedTuples both = edge_tuples(edges, 4);
  expect_equal(both.batch.tuples, rows({0, 1, 0, 2, 1, 0, 1, 1, 2, 0}));
  expect_equal(both.origin, numbers({2, 0, 2, 1, 0}));
  const DerivedTuples loops = edge_tuples(edges, 4, {.both_directions = false, .loops = true});
  expect_equal(loops.batch.tuples, rows({0, 0, 0, 1, 1, 1, 2, 0, 2, 2, 3, 3}));
  expect_equal(loops.origin, numbers({-1, 2, 1, 0, -1, -1}));
  const DerivedTuples undirected = edge_tuples(edges, 4, {.symmetry = Symmetry::undirected});
  expect_equal(undirected.batch.tuples, rows({0, 1, 0, 2, 1, 1}));
  expect_equal(undirected.origin, numbers({2, 0, 1}));
  check_tuples(undirected.batch);
}

TEST(EdgeTuples, RefuseWhatIsNoGraph) {
  EXPECT_EQ(
      error_of([] { edge_tuples(rows({0, 1, 1, 0}), 2); }),
      "[edge_tuples] edges: expected every tuple once, got (0, 1) in rows 0 and 1; edges that "
      "come in both directions want both_directions=False");
  EXPECT_EQ(error_of([] { edge_tuples(rows({0, 1, 0, 1}), 2); }),
            "[edge_tuples] edges: expected every tuple once, got (0, 1) in rows 0 and 1");
  EXPECT_EQ(
      error_of([] { edge_tuples(rows({0, 1, 1, 0}), 2, {.symmetry = Symmetry::undirected}); }),
      "[edge_tuples] edges: expected every tuple once, got (0, 1) in rows 0 and 1; an undirected "
      "graph wants each edge in one direction");
  EXPECT_EQ(error_of([] { edge_tuples(rows({0, 1, 2, 1, 2, 0}, 3), 3); }),
            "[edge_tuples] edges: expected shape [E, 2], got [2, 3]: [2, E] is transposed, pass "
            "edges.t()");
  EXPECT_EQ(edge_tuples(rows({0, 1, 1, 0}), 2, {.both_directions = false}).batch.size(), 2);
  EXPECT_EQ(error_of([] { edge_tuples(rows({0, 2}), 2); }),
            "[edge_tuples] edges: expected nodes 0 to 1 in graph 0, got 2 in row 0");
  EXPECT_EQ(
      error_of([] { edge_tuples(rows({1, 1}), 2, {.symmetry = Symmetry::loop_free}); }),
      "[edge_tuples] edges: expected distinct nodes in a loop-free tuple, got (1, 1) in row 0");
  EXPECT_EQ(error_of([] { edge_tuples(rows({0, 1, 2}, 3), 3); }),
            "[edge_tuples] edges: expected shape [E, 2], got [1, 3]");
  EXPECT_EQ(
      error_of([] { edge_tuples(rows({}), 1, {.symmetry = Symmetry::loop_free, .loops = true}); }),
      "[edge_tuples] loops: a loop-free graph has none");
}

TEST(CompleteTuples, AreThoseOfEveryGraph) {
  const TupleBatch pairs = complete_tuples(numbers({2, 0, 1}), 2);
  expect_equal(pairs.tuples, rows({0, 0, 0, 1, 1, 0, 1, 1, 2, 2}));
  expect_equal(pairs.tuple_offsets, numbers({0, 4, 4, 5}));
  expect_equal(pairs.node_offsets, numbers({0, 2, 2, 3}));
  EXPECT_EQ(complete_tuples(numbers({5, 3}), 3, Symmetry::undirected, false).size(), 11);
  EXPECT_EQ(complete_tuples(numbers({5, 3}), 2, Symmetry::loop_free).size(), 26);
  const TupleBatch empty = complete_tuples(numbers({5, 0}), 0);
  EXPECT_EQ(empty.tuples.sizes(), (at::IntArrayRef{2, 0}));
  check_tuples(empty);
  EXPECT_EQ(error_of([] { complete_tuples(numbers({1000000}), 3); }),
            "[complete_tuples] order: expected tuples of at most 536870912 entries in all, got "
            "more of order 3");
  EXPECT_EQ(error_of([] { complete_tuples(numbers({-1}), 3); }),
            "[complete_tuples] nodes: expected at least 0 and at most 536870912 in all, got -1");
}

// Two graphs of 3 and 2 nodes.
TupleBatch two_graphs() {
  return tuple_batch(rows({1, 2, 0, 1, 3, 4}), numbers({0, 2, 3}), numbers({0, 3, 5}),
                     Symmetry::undirected);
}

TEST(WithLoops, KeepsGraphsApart) {
  const DerivedTuples loops = with_loops(two_graphs());
  expect_equal(loops.batch.tuples, rows({0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}));
  expect_equal(loops.batch.tuple_offsets, numbers({0, 5, 8}));
  expect_equal(loops.origin, numbers({-1, 1, -1, 0, -1, -1, 2, -1}));
  EXPECT_EQ(error_of([] { with_loops(complete_tuples(numbers({2}), 2, Symmetry::loop_free)); }),
            "[with_loops] batch: a loop-free batch has no loops");
}

TEST(AllOrders, OfAnUndirectedBatchAreOrdered) {
  const DerivedTuples ordered = all_orders(two_graphs());
  expect_equal(ordered.batch.tuples, rows({0, 1, 1, 0, 1, 2, 2, 1, 3, 4, 4, 3}));
  EXPECT_EQ(ordered.batch.symmetry, Symmetry::ordered);
  EXPECT_EQ(error_of([&] { all_orders(ordered.batch); }),
            "[all_orders] batch: expected an undirected batch");
}

TEST(ProjectTuples, KeepsOrLowersTheOrder) {
  const TupleBatch triples = tuple_batch(rows({2, 0, 2}, 3), 4);
  expect_equal(project_tuples(triples, 2).tuples, rows({0, 0, 0, 2, 2, 0, 2, 2}));
  expect_equal(project_tuples(triples, 2, Symmetry::loop_free).tuples, rows({0, 2, 2, 0}));
  expect_equal(project_tuples(triples, 1, {}, false).tuples, rows({0, 2}, 1));
  expect_equal(project_tuples(triples, 1, {}, true).tuples, rows({0, 1, 2, 3}, 1));
  expect_equal(project_tuples(triples, 1, Symmetry::loop_free, true).tuples, rows({0, 1, 2, 3}, 1));
  expect_equal(project_tuples(triples, 2, {}, true).tuples,
               rows({0, 0, 0, 2, 1, 1, 2, 0, 2, 2, 3, 3}));
  EXPECT_EQ(error_of([&] { project_tuples(triples, 1); }),
            "[project_tuples] batch: 2 of 4 nodes are in no tuple and would get no row; expected "
            "all_nodes=True, which gives them one, or all_nodes=False, which leaves them out");
  EXPECT_EQ(error_of([&] { project_tuples(triples, 2, Symmetry::loop_free, true); }),
            "[project_tuples] all_nodes: loop-free tuples of order 2 hold no node alone, expected "
            "order 1");
  expect_equal(project_tuples(two_graphs(), 1).tuples, rows({0, 1, 2, 3, 4}, 1));
  expect_equal(project_tuples(triples, 3).tuples, triples.tuples);
  EXPECT_EQ(project_tuples(two_graphs(), 0).size(), 2);
  EXPECT_EQ(error_of([&] { project_tuples(triples, 4); }),
            "[project_tuples] order: expected 0 to 3, the order of the batch, got 4");
  EXPECT_EQ(error_of([&] { project_tuples(triples, 3, Symmetry::undirected); }),
            "[project_tuples] symmetry: expected the batch's own for its own order");
}

TEST(Batches, AreTakenApartAndPutTogether) {
  const TupleBatch batch = two_graphs();
  const std::vector<TupleBatch> graphs = split_graphs(batch);
  ASSERT_EQ(graphs.size(), 2u);
  expect_equal(graphs[1].tuples, rows({0, 1}));
  EXPECT_EQ(graphs[1].nodes(), 2);
  const TupleBatch again = concatenate_graphs({graphs[0], graphs[1]});
  expect_equal(again.tuples, batch.tuples);
  expect_equal(again.tuple_offsets, batch.tuple_offsets);
  expect_equal(again.node_offsets, batch.node_offsets);
  EXPECT_EQ(error_of([&] { concatenate_graphs({batch, tuple_batch(rows({0, 1}), 2)}); }),
            "[concatenate_graphs] batches: expected one order and symmetry, got orders 2 and 2");
  EXPECT_EQ(error_of([] { concatenate_graphs({}); }),
            "[concatenate_graphs] batches: expected at least one");
}

TEST(Features, OfNodesAreNeverLost) {
  const at::Tensor nodes = at::ones({3, 2}), edges = at::ones({1, 1});
  EXPECT_EQ(error_of([&] { node_and_edge_features(edge_tuples(rows({0, 1}), 3), nodes, edges); }),
            "[node_and_edge_features] graph: 3 of 3 nodes have no loop to carry their features; "
            "expected one of every node, as edge_tuples(.., loops=True) and with_loops() add");
  EXPECT_THAT(error_of([&] {
                node_and_edge_features(edge_tuples(rows({0, 0, 0, 1}), 3), nodes, at::ones({2, 1}));
              }),
              ::testing::HasSubstr("2 of 3 nodes have no loop"));
  // Without node features there is nothing to lose.
  EXPECT_EQ(node_and_edge_features(edge_tuples(rows({0, 1}), 3), at::ones({3, 0}), edges).size(1),
            1);
  // Hyperedges: (0, 0, 0), (0, 1, 2), (1, 1, 1), (2, 2, 2)
  const DerivedTuples hyperedges = with_loops(tuple_batch(rows({0, 1, 2}, 3), 3));
  expect_equal(node_and_edge_features(hyperedges, at::tensor({1., 2., 3.}).view({3, 1}),
                                      at::tensor({9.}).view({1, 1})),
               at::tensor({1., 0., 0., 9., 2., 0., 3., 0.}).view({4, 2}));
  EXPECT_THAT(error_of([&] { node_and_edge_features(hyperedges, nodes, at::ones({1})); }),
              ::testing::HasSubstr("edge_features: expected shape [E, d], got [1]"));
}

TEST(Features, FollowTheirRows) {
  const DerivedTuples graph = edge_tuples(rows({0, 1}), 3, {.loops = true});
  const at::Tensor nodes = at::tensor({1., 2., 3.}).view({3, 1});
  const at::Tensor edges = at::tensor({8., 9.}).view({1, 2}).requires_grad_();
  const at::Tensor features = node_and_edge_features(graph, nodes, edges);
  // (0, 0), (0, 1), (1, 0), (1, 1), (2, 2)
  expect_equal(
      features.detach(),
      at::tensor({1., 0., 0., 0., 8., 9., 0., 8., 9., 2., 0., 0., 3., 0., 0.}).view({5, 3}));
  features.sum().backward();
  expect_equal(edges.grad(), at::full({1, 2}, 2., at::kDouble));
  EXPECT_EQ(error_of([&] { derived_features(edges, numbers({1})); }),
            "[derived_features] origin: expected rows -1 to 0, got 1 to 1");
}

}  // namespace
}  // namespace nsimplex
