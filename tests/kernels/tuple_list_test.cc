// The checks of lists, on lists that a hostile caller could hand over: what they let through reads
// nothing beyond its arrays, and what they refuse is refused where the fault is.
#include "kernels/common/sparse_problem.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <vector>

namespace nsimplex::kernels::testing {
namespace {

using Kind = ListFault::Kind;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();

TEST(TupleList, OffsetsNeverFallAndStayInTheList) {
  const auto kind = [](std::vector<int64_t> offsets, int64_t rows) {
    return find_offset_fault(offsets.data(), rows, static_cast<int64_t>(offsets.size()) / rows - 1,
                             4)
        .kind;
  };
  EXPECT_EQ(kind({0, 0, 4}, 1), Kind::none);
  EXPECT_EQ(kind({2, 2, 2}, 1), Kind::none);
  EXPECT_EQ(kind({0}, 1), Kind::none) << "no queries";
  EXPECT_EQ(kind({0, 4, 1, 3}, 2), Kind::none) << "every row starts anew";
  EXPECT_EQ(kind({-1, 0, 4}, 1), Kind::first_offset);
  EXPECT_EQ(kind({0, 3, 2}, 1), Kind::offset_order);
  EXPECT_EQ(kind({0, 3, 5}, 1), Kind::offset_range);
  EXPECT_EQ(kind({0, kHuge, kHuge}, 1), Kind::offset_range);
  EXPECT_EQ(kind({0, kHuge, kLowest}, 1), Kind::offset_order);
  EXPECT_EQ(kind({kLowest, 0, 0}, 1), Kind::first_offset);
}

TEST(TupleList, TheFirstFaultIsNamed) {
  const int64_t lengths[] = {3, 5};
  const std::vector<int32_t> tuples{0, 4, 2, 5, 3, 0};
  const ListFault fault = find_tuple_fault(tuples.data(), 3, 2, lengths);
  EXPECT_EQ(fault.kind, Kind::index_range);
  EXPECT_EQ(fault.at, 3);
  EXPECT_EQ(fault.value, 5);
  EXPECT_EQ(fault.limit, 5);
  const std::vector<int64_t> sets{0, 2, -1, 1, -1, 2};
  const ListFault gap = find_set_fault(sets.data(), 2, 3, 3);
  EXPECT_EQ(gap.kind, Kind::index_behind_gap);
  EXPECT_EQ(gap.at, 5);
  EXPECT_FALSE(find_set_fault(sets.data(), 1, 3, 3));
  EXPECT_FALSE(find_set_fault(sets.data(), 5, 0, 3)) << "k = 0";
  EXPECT_TRUE(find_set_fault(sets.data(), 1, 3, 0)) << "no key to name";
}

// Numbers as they come from a file that is not what it claims: mostly small, some absurd.
int64_t any_number() {
  return *rc::gen::weightedOneOf<int64_t>(
      {{12, rc::gen::inRange<int64_t>(-2, 7)},
       {1, rc::gen::elementOf(
               std::vector<int64_t>{kHuge, kLowest, int64_t{1} << 31, -(int64_t{1} << 31)})}});
}

std::vector<int64_t> any_numbers(int64_t count) {
  std::vector<int64_t> numbers(count);
  for (int64_t& number : numbers) number = any_number();
  return numbers;
}

// Visits every tuple of every query, touching the index and a row of each axis: what a kernel
// reads. The arrays are of exactly their size, for the address sanitizer.
void visit_everything(const TupleLists& lists, int order, int64_t numbers, int64_t queries,
                      const std::vector<int64_t>& lengths) {
  std::vector<std::vector<char>> rows;
  for (const int64_t length : lengths) rows.emplace_back(length, 1);
  for (int64_t list = 0; list < numbers; ++list) {
    for (int64_t query = 0; query < queries; ++query) {
      const int64_t* before = nullptr;
      for_each_run(lists, order, list, queries, query, [&](const TupleRun& run) {
        RC_ASSERT(run.count >= 1);
        RC_ASSERT((before || run.changed == 0) && run.changed <= order - 1);
        before = run.last;
        for (int p = 0; p + 1 < order; ++p) RC_ASSERT(rows[p].at(run.leading[p]) == 1);
        for (int64_t i = 0; i < run.count; ++i) {
          RC_ASSERT(rows[order - 1].at(run.last[i * run.stride]) == 1);
        }
      });
    }
  }
}

TEST(TupleListFuzz, ListsThatPassAreReadWithinTheirArrays) {
  EXPECT_TRUE(rc::check([] {
    const int order = *rc::gen::inRange(1, 4);
    const int64_t tuples = *rc::gen::inRange<int64_t>(0, 6), queries = *rc::gen::inRange(0, 4);
    const int64_t numbers = *rc::gen::inRange<int64_t>(1, 3);
    const std::vector<int64_t> indices = any_numbers(tuples * order);
    const std::vector<int64_t> offsets = any_numbers(numbers * (queries + 1));
    std::vector<int64_t> lengths(order);
    for (int64_t& length : lengths) length = *rc::gen::inRange<int64_t>(0, 7);
    if (find_offset_fault(offsets.data(), numbers, queries, tuples)) return;
    if (find_tuple_fault(indices.data(), tuples, order, lengths.data())) return;
    const TupleLists lists{.pattern = ListPattern::list,
                           .indices = indices.data(),
                           .offsets = offsets.data(),
                           .groups = numbers,
                           .size = order};
    visit_everything(lists, order, numbers, queries, lengths);
  }));
}

TEST(TupleListFuzz, SetsThatPassAreReadWithinTheirArrays) {
  EXPECT_TRUE(rc::check([] {
    const int order = *rc::gen::inRange(1, 4);
    const int64_t length = *rc::gen::inRange<int64_t>(0, 5), size = *rc::gen::inRange(0, 4);
    const bool path = *rc::gen::arbitrary<bool>();
    const int64_t queries =
        path ? *rc::gen::inRange<int64_t>(0, length + 1) : *rc::gen::inRange<int64_t>(0, 4);
    const int64_t numbers = *rc::gen::inRange<int64_t>(1, 3), rows = path ? length : queries;
    const std::vector<int64_t> indices = any_numbers(numbers * rows * size);
    if (find_set_fault(indices.data(), numbers * rows, size, length)) return;
    const TupleLists lists{.pattern = path ? ListPattern::path : ListPattern::product,
                           .indices = indices.data(),
                           .groups = numbers,
                           .rows = rows,
                           .size = size};
    visit_everything(lists, order, numbers, queries, std::vector<int64_t>(order, length));
  }));
}

// Runs of a list, as (leading keys, changed, last keys).
TEST(TupleRuns, NeighboursWithEqualLeadingKeysAreOneRun) {
  const std::vector<int64_t> tuples{1, 2, 0, 1, 2, 4, 1, 3, 3, 5, 3, 3, 1, 2, 9};
  const std::vector<int64_t> offsets{0, 5};
  const TupleLists lists{.indices = tuples.data(), .offsets = offsets.data(), .size = 3};
  std::vector<std::vector<int64_t>> runs;
  for_each_run(lists, 3, 0, 1, 0, [&](const TupleRun& run) {
    runs.push_back({run.leading[0], run.leading[1], run.changed});
    for (int64_t i = 0; i < run.count; ++i) runs.back().push_back(run.last[i * run.stride]);
  });
  EXPECT_EQ(runs, (std::vector<std::vector<int64_t>>{
                      {1, 2, 0, 0, 4}, {1, 3, 1, 3}, {5, 3, 0, 3}, {1, 2, 0, 9}}));
}

TEST(TupleRuns, ChainsKeepWhatTheyShare) {
  const std::vector<int64_t> sets{-1, -1, 0, 2, 1, 2, 3, 1};  // of positions 0 .. 3
  const TupleLists lists{
      .pattern = ListPattern::path, .indices = sets.data(), .rows = 4, .size = 2};
  std::vector<std::vector<int64_t>> runs;
  for_each_run(lists, 3, 0, 2, 1, [&](const TupleRun& run) {
    runs.push_back({run.leading[0], run.leading[1], run.changed, run.count});
  });
  // From 3: 3 -> 3 -> {3, 1}, 3 -> 1 -> {0, 2}, 1 -> 0 -> nothing, 1 -> 2 -> {1, 2}.
  EXPECT_EQ(runs, (std::vector<std::vector<int64_t>>{{3, 3, 0, 2}, {3, 1, 1, 2}, {1, 2, 0, 2}}));
}

}  // namespace
}  // namespace nsimplex::kernels::testing
