// Refinement by tuples of neighbours, on graphs of which the answer is known.

#include "equivariant/expressivity/simplicial_refinement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "equivariant/expressivity/colour_refinement.h"
#include "equivariant/known_graphs.h"

namespace nsimplex::equivariant {
namespace {

using enum SimplicialMask;
using enum SimplicialReduce;

constexpr SimplicialMask kMasks[] = {cliques, neighbours, patterns};
constexpr SimplicialReduce kReduces[] = {softmax, sum};

bool told_apart(const io::SimpleGraph& a, const io::SimpleGraph& b,
                const SimplicialRefinement& options) {
  const std::vector<io::SimpleGraph> graphs{a, b};
  const auto kinds = refine_simplicial_colours(graphs, options);
  return kinds[0] != kinds[1];
}

TEST(SimplicialRefinement, TrianglesTellTwoTrianglesFromAHexagon) {
  for (const SimplicialReduce reduce : kReduces) {
    EXPECT_FALSE(told_apart(two_triangles(), cycle(6), {1, cliques, reduce}));
    EXPECT_TRUE(told_apart(two_triangles(), cycle(6), {2, cliques, reduce}));
    EXPECT_TRUE(told_apart(two_triangles(), cycle(6), {2, patterns, reduce}));
    // No clique of four nodes in either: nothing is attended to.
    EXPECT_FALSE(told_apart(two_triangles(), cycle(6), {3, cliques, reduce}));
    EXPECT_TRUE(told_apart(two_triangles(), cycle(6), {3, patterns, reduce}));
  }
}

TEST(SimplicialRefinement, CliquesOfFourTellStronglyRegularGraphsApart) {
  // The neighbours of a node are two triangles in one and a hexagon in the other: six edges each.
  for (const SimplicialReduce reduce : kReduces) {
    EXPECT_FALSE(told_apart(rook(), shrikhande(), {2, cliques, reduce}));
    EXPECT_FALSE(told_apart(rook(), shrikhande(), {2, patterns, reduce}));
    EXPECT_TRUE(told_apart(rook(), shrikhande(), {3, cliques, reduce}));
    EXPECT_TRUE(told_apart(rook(), shrikhande(), {3, patterns, reduce}));
  }
}

TEST(SimplicialRefinement, SquaresAreNotSeen) {
  // Without triangles every pattern of neighbours is the same; 3-WL sees the squares.
  const io::SimpleGraph two_squares{8, {0, 1, 1, 2, 2, 3, 0, 3, 4, 5, 5, 6, 6, 7, 4, 7}};
  for (const int64_t order : {1, 2, 3}) {
    for (const SimplicialMask mask : kMasks) {
      EXPECT_FALSE(told_apart(two_squares, cycle(8), {order, mask, sum})) << order;
    }
  }
  const std::vector<io::SimpleGraph> graphs{two_squares, cycle(8)};
  EXPECT_EQ(refine_colours(graphs, 3), (std::vector<int64_t>{0, 1}));
}

TEST(SimplicialRefinement, AMaskWithoutRelationsAmongTheTupleIsTheFirstTest) {
  const auto pairs = control_pairs(12, 3);
  std::vector<io::SimpleGraph> graphs{two_triangles(), cycle(6), rook(), shrikhande(), cycle(7)};
  graphs.insert(graphs.end(), pairs.begin(), pairs.end());
  const auto expected = refine_colours(graphs, 2);
  for (const int64_t order : {1, 2, 3}) {
    for (const SimplicialReduce reduce : kReduces) {
      EXPECT_EQ(refine_simplicial_colours(graphs, {order, neighbours, reduce}), expected);
    }
  }
  EXPECT_EQ(refine_simplicial_colours(graphs, {1, cliques, softmax}), expected);
}

TEST(SimplicialRefinement, ASumCountsWhatAMeanDoesNot) {
  // Both 4-regular on nine nodes; every node is in two triangles of the first, in three of the
  // second.
  io::SimpleGraph rows_and_columns{9, {}}, circle{9, {}};
  for (int64_t i = 0; i < 9; ++i) {
    for (int64_t j = i + 1; j < 9; ++j) {
      if (i / 3 == j / 3 || i % 3 == j % 3) {
        rows_and_columns.edges.insert(rows_and_columns.edges.end(), {i, j});
      }
      const int64_t step = std::min(j - i, 9 - j + i);
      if (step <= 2) circle.edges.insert(circle.edges.end(), {i, j});
    }
  }
  EXPECT_TRUE(told_apart(rows_and_columns, circle, {2, cliques, sum}));
  EXPECT_FALSE(told_apart(rows_and_columns, circle, {2, cliques, softmax}));
  // All nodes have one colour, so each head has one kind of tuple: its share of its own head is 1.
  EXPECT_TRUE(told_apart(rows_and_columns, circle, {2, patterns, sum}));
  EXPECT_FALSE(told_apart(rows_and_columns, circle, {2, patterns, softmax}));
}

TEST(SimplicialRefinement, AHeadKnowsTheSharesOfItsOwnPattern) {
  // Node 0 has the neighbours 1 to 4, among which are the edges 1-2 and 3-4. Hanging nodes colour
  // the ends: in one graph both edges have a coloured end, in the other one edge has both.
  const io::SimpleGraph apart{7, {0, 1, 0, 2, 0, 3, 0, 4, 1, 2, 3, 4, 1, 5, 3, 6}};
  const io::SimpleGraph together{7, {0, 1, 0, 2, 0, 3, 0, 4, 1, 2, 3, 4, 1, 5, 2, 6}};
  EXPECT_TRUE(told_apart(apart, together, {2, patterns, softmax}));
}

TEST(SimplicialRefinement, SizesAndRelabelings) {
  for (const int64_t order : {1, 2, 3}) {
    for (const SimplicialMask mask : kMasks) {
      const SimplicialRefinement options{order, mask, softmax};
      EXPECT_TRUE(told_apart(cycle(6), cycle(7), options));
      EXPECT_TRUE(told_apart({1, {}}, {2, {}}, options));
      EXPECT_FALSE(told_apart({0, {}}, {0, {}}, options));
      EXPECT_FALSE(told_apart(shrikhande(), relabeled(shrikhande(), 3), options));
      EXPECT_FALSE(told_apart({4, {0, 1, 1, 2}}, {4, {0, 3, 1, 3}}, options));
    }
  }
}

TEST(SimplicialRefinement, StopsByAnException) {
  const std::vector<io::SimpleGraph> graphs{cycle(6)};
  EXPECT_THROW(refine_simplicial_colours(graphs, {}, [] { throw std::runtime_error("stop"); }),
               std::runtime_error);
}

TEST(SimplicialRefinement, TuplesAreCounted) {
  EXPECT_EQ(tuples_of_neighbours(cycle(6), 3), 6 * 8);
  EXPECT_EQ(tuples_of_neighbours({3, {0, 1, 1, 2}}, 2), 1 + 4 + 1);
}

}  // namespace
}  // namespace nsimplex::equivariant
