#include "causal/structure/order_search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "made_tables.h"

namespace nsimplex::causal {
namespace {

using Parents = std::vector<std::vector<int64_t>>;

// A chain 0 -> 1 -> 2 and a collider 3 -> 5 <- 4, every column of variance 1.
class EquivalentGraph : public testing::Test {
 protected:
  EquivalentGraph() : covariances_{{Matrix(6, 6), 1000}} {
    covariances_.all.matrix << 1, .5, .4, 0, 0, 0,  //
        .5, 1, .8, 0, 0, 0,                         //
        .4, .8, 1, 0, 0, 0,                         //
        0, 0, 0, 1, 0, .6,                          //
        0, 0, 0, 0, 1, .6,                          //
        0, 0, 0, .6, .6, 1;
  }

  OrderedGraph graph(const Order& order, const EdgeConstraints& known = {}) {
    const AllowedEdges edges(known, 6);
    const GaussianCosts costs(covariances_);
    ParentSearch search(costs, edges);
    return graph_of_order(search, order);
  }

  Parents turned(OrderedGraph graph, const EdgeConstraints& known = {}) {
    double cost = 0;
    Parents result;
    const GaussianCosts costs(covariances_);
    for (const ParentSet& each : equivalent_graph(explained_parts(covariances_.all.matrix),
                                                  AllowedEdges(known, 6), costs, graph.parents)) {
      cost += each.cost;
      result.push_back(each.parents);
    }
    EXPECT_NEAR(cost, graph.cost, 1e-9 * std::abs(graph.cost));
    return result;
  }

  Covariances covariances_;
};

TEST_F(EquivalentGraph, ExplainedPartsAreSquaredMultipleCorrelations) {
  const Vector explained = explained_parts(covariances_.all.matrix);
  EXPECT_NEAR(explained[0], 0.25, 1e-5);
  EXPECT_NEAR(explained[2], 0.64, 1e-5);
  EXPECT_NEAR(explained[5], 0.72, 1e-5);
  // That of 1, by its regression on 0 and 2.
  EXPECT_NEAR(explained[1], (.25 + .64 - 2 * .5 * .8 * .4) / (1 - .16), 1e-5);
}

TEST_F(EquivalentGraph, EndsWithWhatIsExplainedBest) {
  // Of the chain either end may be last, and 2 is explained better than 0, whatever was given; the
  // collider stays.
  const Parents expected = {{}, {0}, {1}, {}, {}, {3, 4}};
  for (const Order& order : {Order{2, 1, 0, 3, 4, 5}, {1, 0, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}}) {
    EXPECT_EQ(turned(graph(order)), expected);
  }
}

TEST_F(EquivalentGraph, KeepsWhatMayNotTurn) {
  const Parents kept = {{1}, {}, {1}, {}, {}, {3, 4}};
  const Order order{1, 0, 2, 3, 4, 5};
  const EdgeConstraints required{.required = {{1, 0}, {1, 2}}};
  EXPECT_EQ(turned(graph(order, required), required), kept);
  const EdgeConstraints forbidden{.forbidden = {{0, 1}, {2, 1}}};
  EXPECT_EQ(turned(graph(order, forbidden), forbidden), kept);
}

}  // namespace
}  // namespace nsimplex::causal
