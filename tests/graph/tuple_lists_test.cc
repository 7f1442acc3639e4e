#include "graph/tuple_lists.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <map>

#include "graph/view_of.h"

namespace nsimplex::graph {
namespace {

using testing::ElementsAre;

constexpr std::array kSymmetries = {Symmetry::ordered, Symmetry::loop_free, Symmetry::undirected};

using Tuple = std::vector<int64_t>;

bool fits(const Tuple& tuple, Symmetry symmetry, bool loops) {
  const auto distinct = std::set<int64_t>(tuple.begin(), tuple.end()).size();
  return (loops || distinct == tuple.size()) &&
         (symmetry != Symmetry::undirected || std::is_sorted(tuple.begin(), tuple.end()));
}

// All tuples of entries of `nodes`, by counting in base |nodes|.
std::vector<Tuple> all_tuples(const Tuple& nodes, int64_t order) {
  std::vector<Tuple> result = {{}};
  for (int64_t place = 0; place < order; ++place) {
    std::vector<Tuple> longer;
    for (const Tuple& tuple : result) {
      for (const int64_t node : nodes) {
        longer.push_back(tuple);
        longer.back().push_back(node);
      }
    }
    result = longer;
  }
  return result;
}

std::map<Tuple, int64_t> as_map(const TupleList& list) {
  std::map<Tuple, int64_t> result;
  for (int64_t row = 0; row < list.count(); ++row) {
    const auto tuple = list.rows()[row];
    RC_ASSERT(result.emplace(Tuple(tuple.begin(), tuple.end()), list.origin[row]).second);
    if (row > 0) RC_ASSERT(row_before(list.rows(), row - 1, row));
  }
  return result;
}

TEST(TupleLists, CompleteTuplesAreAllOfThem) {
  for (const Symmetry symmetry : kSymmetries) {
    for (const bool loops : {false, true}) {
      for (int64_t order = 0; order <= 3; ++order) {
        for (int64_t nodes = 0; nodes <= 4; ++nodes) {
          Tuple values;
          for (int64_t node = 0; node < nodes; ++node) values.push_back(2 + node);
          Tuple expected;
          int64_t count = 0;
          for (const Tuple& tuple : all_tuples(values, order)) {
            if (!fits(tuple, symmetry, loops)) continue;
            expected.insert(expected.end(), tuple.begin(), tuple.end());
            ++count;
          }
          const TupleList list =
              complete_tuples(std::array<int64_t, 2>{2, 2 + nodes}, order, symmetry, loops);
          EXPECT_EQ(list.values, expected);
          EXPECT_EQ(list.count(), count);
          EXPECT_EQ(complete_count(nodes, order, symmetry, loops), count);
        }
      }
    }
  }
}

TEST(TupleLists, CompleteCountsSayWhenTheyAreTooMany) {
  EXPECT_EQ(complete_count(100000, 3, Symmetry::ordered, true), 1000000000000000);
  EXPECT_EQ(complete_count(100000, 4, Symmetry::ordered, true), -1);
  EXPECT_EQ(complete_count(INT64_MAX, 2, Symmetry::undirected, true), -1);
  EXPECT_EQ(complete_count(62, 31, Symmetry::undirected, false), 465428353255261088);
}

TEST(TupleLists, LoopsAreAddedWhereTheyLack) {
  const Tuples graph = Tuples::of(4, {2, 1, 1, 1, 0, 3});
  const TupleList list = with_loops(graph.view());
  EXPECT_THAT(list.values, ElementsAre(0, 0, 0, 3, 1, 1, 2, 1, 2, 2, 3, 3));
  EXPECT_THAT(list.origin, ElementsAre(-1, 2, 1, 0, -1, -1));
}

TEST(TupleLists, OrdersAreThoseOfDistinctEntries) {
  const Tuples graph = Tuples::of(3, {1, 1, 2, 0, 1, 2}, 3, Symmetry::undirected);
  const TupleList list = all_orders(graph.view());
  EXPECT_THAT(list.values, ElementsAre(0, 1, 2, 0, 2, 1, 1, 0, 2, 1, 1, 2, 1, 2, 0, 1, 2, 1, 2, 0,
                                       1, 2, 1, 0, 2, 1, 1));
  EXPECT_THAT(list.origin, ElementsAre(1, 1, 1, 0, 1, 0, 1, 1, 0));
}

TEST(TupleLists, ProjectionIsThatOfTheDefinition) {
  rc::check([] {
    const auto width = *rc::gen::inRange<int64_t>(2, 5);
    const auto order = *rc::gen::inRange<int64_t>(1, width);
    const Symmetry symmetry = *rc::gen::elementOf(kSymmetries);
    const auto count = *rc::gen::inRange<int64_t>(0, 6);
    const auto values =
        *rc::gen::container<std::vector<int64_t>>(count * width, rc::gen::inRange<int64_t>(0, 5));
    const Tuples graph = Tuples::of(5, values, width);
    std::map<Tuple, int64_t> expected;
    for (int64_t row = 0; row < count; ++row) {
      const auto tuple = graph.view().tuples[row];
      const std::set<int64_t> entries(tuple.begin(), tuple.end());
      for (const Tuple& part : all_tuples({entries.begin(), entries.end()}, order)) {
        if (fits(part, symmetry, symmetry != Symmetry::loop_free)) expected.emplace(part, row);
      }
    }
    RC_ASSERT(as_map(project(graph.view(), order, symmetry)) == expected);
  });
}

TEST(TupleLists, ProjectionToNothingIsOneRowAGraph) {
  const Tuples graphs{{0, 1}, {0, 1, 1, 1}, {0, 2, 2, 5}};
  const TupleList list = project(graphs.view(), 0, Symmetry::ordered);
  EXPECT_EQ(list.count(), 3);
  EXPECT_THAT(offsets_of_sorted(list, graphs.node_offsets), ElementsAre(0, 1, 2, 3));
}

TEST(TupleLists, OffsetsFollowTheNodes) {
  const TupleList list{2, {0, 1, 1, 1, 5, 6}, {-1, -1, -1}};
  EXPECT_THAT(offsets_of_sorted(list, std::array<int64_t, 5>{0, 2, 2, 5, 7}),
              ElementsAre(0, 2, 2, 2, 3));
}

}  // namespace
}  // namespace nsimplex::graph
