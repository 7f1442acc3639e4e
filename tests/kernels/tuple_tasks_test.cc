// How attention between groups is cut into tasks.

#include <gtest/gtest.h>

#include "kernels/cpu/equivariant/tuple_attention.h"
#include "kernels/tuple_case.h"

namespace nsimplex::kernels::testing {
namespace {

TEST(TupleAttentionTasks, DependOnTheRelationAlone) {
  const Groups groups({{600, 600}, {2, 2}, {2, 2}, {0, 9}});
  const auto tasks = cut_pairs(groups.relation(), TupleSide::queries, INT64_MAX);
  ASSERT_GT(tasks.size(), 2U);
  EXPECT_EQ(tasks.front().row_begin, 0);
  EXPECT_EQ(tasks.back().group_begin, 1);
  EXPECT_EQ(tasks.back().group_end, 4);
  int64_t rows = 0;
  for (const GroupTask& task : tasks) rows += task.row_end - task.row_begin;
  EXPECT_EQ(rows, 600);
}

// Be it made by many rows or by few, what many rows meet is shared out.
TEST(TupleAttentionTasks, NoTaskMeetsALargeGroupAlone) {
  for (const GroupSize size : {GroupSize{5000, 5000}, GroupSize{600, 5000}, GroupSize{3, 5000}}) {
    const Groups groups({{40, 40}, size, {2, 2}});
    TupleCase<float> own(groups);
    const std::vector<TableMember> members{{groups.relation(), 1}};
    TableAttention<float> problem;
    own.fill(problem);
    problem.members = members;
    problem.groups = 3;
    problem.offsets = groups.query_offsets.data();
    problem.rows = groups.queries.data();
    const TablePlan plan = plan_tables(problem, TupleSide::queries);
    EXPECT_EQ(plan.large.at(0), (std::vector<int64_t>{-1, 0, -1}));
    int64_t rows = 0;
    for (const GroupTask& task : plan.tasks) {
      if (task.group_begin != 1) continue;
      EXPECT_LE(task.row_end - task.row_begin, 1000);
      rows += task.row_end - task.row_begin;
    }
    EXPECT_EQ(rows, 5000) << size.keys;
    int64_t made = 0;
    for (const TablePlan::Block& block : plan.blocks) {
      EXPECT_LE(block.end - block.begin, kLargeTableGroup);
      made += block.end - block.begin;
    }
    EXPECT_EQ(made, size.keys);
  }
}

}  // namespace
}  // namespace nsimplex::kernels::testing
