#include "analysis/mask_hypergraph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "graph/view_of.h"

namespace nsimplex::analysis {
namespace {

using graph::Tuples;

TEST(MaskHypergraph, InformationFlowsFromSourcesToTheTarget) {
  // Position 2 sees the pairs (0, 1) and (2, 1); position 0 sees itself twice.
  const Tuples mask = Tuples::of(3, {2, 0, 1, 2, 2, 1, 0, 0, 0}, 3);
  const MaskHypergraph found = mask_hypergraph(mask.view());
  EXPECT_EQ(found.loops, (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(found.receivers.offsets, (std::vector<int64_t>{0, 1, 2, 2}));
  EXPECT_EQ(found.receivers.neighbours, (std::vector<int64_t>{2, 2}));
  // Sources of one row are neighbours in the skeleton, though neither receives from the other.
  EXPECT_EQ(found.skeleton.neighbours, (std::vector<int64_t>{1, 2, 0, 2, 0, 1}));
  EXPECT_EQ(distances_from(found.receivers, 0), (std::vector<int64_t>{0, -1, 1}));
}

TEST(MaskHypergraph, OfACausalChainHasOneCentre) {
  // Every position sees itself and the one before: the first reaches all, the last only itself.
  const Tuples mask = Tuples::of(4, {0, 0, 1, 1, 1, 0, 2, 2, 2, 1, 3, 3, 3, 2});
  const MaskHypergraph found = mask_hypergraph(mask.view());
  const Extent extent = extent_of(found.receivers, 0, 4);
  EXPECT_EQ(extent.eccentricities, (std::vector<int64_t>{3, -1, -1, -1}));
  EXPECT_EQ(extent.radius, 3);
  EXPECT_EQ(extent.diameter, -1);
  EXPECT_EQ(found.loops, (std::vector<uint8_t>(4, 1)));
  EXPECT_EQ(distances_from(found.receivers, 1), (std::vector<int64_t>{-1, 0, 1, 2}));
}

TEST(MaskHypergraph, WithoutACentreIsNotQuasiStronglyConnected) {
  const Tuples mask = Tuples::of(3, {1, 0, 1, 2});  // two that hand on, neither to the other
  const Extent extent = extent_of(mask_hypergraph(mask.view()).receivers, 0, 3);
  EXPECT_EQ(extent.radius, -1);
  EXPECT_EQ(extent.diameter, -1);
}

TEST(MaskHypergraph, UndirectedRowsAreAllTheirOrders) {
  const Tuples graph = graph::chain(7), closed = graph::chain(6, true);
  const MaskHypergraph path = mask_hypergraph(graph.view()), cycle = mask_hypergraph(closed.view());
  const Extent of_path = extent_of(path.receivers, 0, 7),
               of_cycle = extent_of(cycle.receivers, 0, 6);
  EXPECT_EQ(of_path.radius, 3);
  EXPECT_EQ(of_path.diameter, 6);
  EXPECT_EQ(of_cycle.radius, 3);
  EXPECT_EQ(of_cycle.diameter, 3);
  EXPECT_EQ(path.receivers.neighbours, path.skeleton.neighbours);

  const Tuples triple = Tuples::of(3, {0, 1, 2}, 3, Symmetry::undirected);
  EXPECT_EQ(extent_of(mask_hypergraph(triple.view()).receivers, 0, 3).diameter, 1);
}

// Fan Chung, Spectral Graph Theory, examples 1.1 to 1.5.
TEST(MaskHypergraph, SpectralGapsAreKnown) {
  const auto gap = [](const Tuples& graph) {
    const int64_t nodes = graph.node_offsets.back();
    return spectral_gap(mask_hypergraph(graph.view()).skeleton, 0, nodes);
  };
  EXPECT_NEAR(gap(graph::chain(9)), 1 - std::cos(std::numbers::pi / 8), 1e-12);
  EXPECT_NEAR(gap(graph::chain(10, true)), 1 - std::cos(2 * std::numbers::pi / 10), 1e-12);
  EXPECT_NEAR(gap(Tuples::of(4, {0, 1, 0, 2, 0, 3})), 1, 1e-12);                          // a star
  EXPECT_NEAR(gap(Tuples::of(4, {0, 1, 2, 3}, 4, Symmetry::undirected)), 4 / 3., 1e-12);  // K_4
  EXPECT_EQ(gap(Tuples::of(4, {0, 1, 2, 3})), 0);
  EXPECT_TRUE(std::isnan(gap(Tuples::of(1, {0, 0}))));
  EXPECT_NEAR(gap(graph::chain(300)), 1 - std::cos(std::numbers::pi / 299), 1e-9);  // iterated
}

TEST(MaskHypergraph, GraphsOfABatchStandAlone) {
  Tuples both = Tuples::of(5, {0, 1, 1, 2, 3, 4}, 2, Symmetry::undirected);
  const MaskHypergraph found = mask_hypergraph(both.view());
  EXPECT_EQ(extent_of(found.receivers, 0, 3).diameter, 2);
  EXPECT_EQ(extent_of(found.receivers, 3, 5).diameter, 1);
  EXPECT_EQ(extent_of(found.receivers, 0, 5).radius, -1);
  EXPECT_NEAR(spectral_gap(found.skeleton, 3, 5), 2, 1e-12);
}

}  // namespace
}  // namespace nsimplex::analysis
