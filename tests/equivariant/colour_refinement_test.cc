// Colour refinement on graphs of which the theory says what it can tell apart.

#include "equivariant/expressivity/colour_refinement.h"

#include <gtest/gtest.h>

#include "equivariant/known_graphs.h"

namespace nsimplex::equivariant {
namespace {

bool told_apart(const io::SimpleGraph& a, const io::SimpleGraph& b, int64_t order) {
  const std::vector<io::SimpleGraph> graphs{a, b};
  const auto kinds = refine_colours(graphs, order);
  return kinds[0] != kinds[1];
}

TEST(ColourRefinement, TwoTrianglesAndAHexagonNeedTriples) {
  EXPECT_FALSE(told_apart(two_triangles(), cycle(6), 2));
  EXPECT_TRUE(told_apart(two_triangles(), cycle(6), 3));
}

TEST(ColourRefinement, StronglyRegularGraphsOfEqualParametersAreEqualToTriples) {
  EXPECT_FALSE(told_apart(shrikhande(), rook(), 2));
  EXPECT_FALSE(told_apart(shrikhande(), rook(), 3));
}

TEST(ColourRefinement, DegreesBehindDegreesAreSeenByPairs) {
  // Equal degrees; the two nodes of degree 3 are neighbours in one and not in the other.
  const io::SimpleGraph near{8, {0, 1, 0, 2, 0, 3, 1, 4, 1, 5, 2, 6, 3, 7}};
  const io::SimpleGraph far{8, {0, 2, 2, 1, 0, 3, 0, 4, 1, 5, 1, 6, 3, 7}};
  EXPECT_TRUE(told_apart(near, far, 2));
  EXPECT_TRUE(told_apart(near, far, 3));
}

TEST(ColourRefinement, SizesAndRelabelings) {
  for (const int64_t order : {2, 3}) {
    EXPECT_TRUE(told_apart(cycle(6), cycle(7), order));
    EXPECT_TRUE(told_apart({1, {}}, {2, {}}, order));
    EXPECT_FALSE(told_apart({0, {}}, {0, {}}, order));
    EXPECT_FALSE(told_apart(shrikhande(), relabeled(shrikhande(), 3), order));
    EXPECT_FALSE(told_apart({4, {0, 1, 1, 2}}, {4, {3, 1, 0, 3}}, order));
  }
}

TEST(ColourRefinement, KindsAreNumberedInTheOrderOfTheirFirstGraph) {
  const std::vector<io::SimpleGraph> graphs{cycle(6), two_triangles(), cycle(5),
                                            relabeled(two_triangles(), 5), cycle(6)};
  EXPECT_EQ(refine_colours(graphs, 3), (std::vector<int64_t>{0, 1, 2, 1, 0}));
  EXPECT_EQ(refine_colours(graphs, 2), (std::vector<int64_t>{0, 0, 1, 0, 0}));
}

TEST(ColourRefinement, StopsByAnException) {
  const std::vector<io::SimpleGraph> graphs{cycle(6)};
  EXPECT_THROW(refine_colours(graphs, 3, [] { throw std::runtime_error("stop"); }),
               std::runtime_error);
}

}  // namespace
}  // namespace nsimplex::equivariant
