// Divides the groups of equivariant attention, by pairs or by tables, into tasks of equal cost.

#include <algorithm>

#include "kernels/cpu/equivariant/equivariant_layout.h"
#include "kernels/cpu/equivariant/tuple_attention.h"
#include "kernels/cpu/shared/simd.h"

namespace nsimplex::kernels {
namespace {

struct Sides {
  const int32_t *rows, *others;  // offsets
};

Sides sides_of(const TupleRelation& relation, TupleSide side) {
  return side == TupleSide::queries ? Sides{relation.query_offsets, relation.key_offsets}
                                    : Sides{relation.key_offsets, relation.query_offsets};
}

// Consecutive groups form a task once they cost enough. A group that costs more is split by its
// rows.
class TaskCutter {
 public:
  explicit TaskCutter(int64_t most) : most_(most) {}

  void add(int64_t group, int64_t rows, int64_t cost_of_row) {
    const int64_t cost = rows * cost_of_row;
    if (cost <= most_) {
      if (cost_ + cost > most_) flush(group);
      cost_ += cost;
      return;
    }
    flush(group);
    const int64_t step = std::max<int64_t>(most_ / cost_of_row, equivariant::kSmallestRows);
    for (int64_t begin = 0; begin < rows; begin += step) {
      tasks_.push_back({group, group + 1, begin, std::min(begin + step, rows)});
    }
    first_ = group + 1;
  }

  std::vector<GroupTask> finish(int64_t groups) {
    flush(groups);
    return std::move(tasks_);
  }

 private:
  void flush(int64_t group) {
    if (group > first_) tasks_.push_back({first_, group, 0, 0});
    first_ = group;
    cost_ = 0;
  }

  int64_t most_, first_ = 0, cost_ = 0;
  std::vector<GroupTask> tasks_;
};

// For each group of a member's relation, the number of rows that meet its table.
template <class T>
std::vector<int64_t> rows_that_meet(const TableAttention<T>& problem, const TableMember& member) {
  std::vector<int64_t> meeting(member.relation.groups, 0);
  for (int64_t g = 0; g < problem.groups; ++g) {
    const int64_t group = member.group_of(g);
    if (group >= 0) meeting[group] += problem.offsets[g + 1] - problem.offsets[g];
  }
  return meeting;
}

}  // namespace

std::vector<GroupTask> cut_pairs(const TupleRelation& relation, TupleSide side,
                                 int64_t largest_group) {
  read_simd_environment();
  const auto [rows, others] = sides_of(relation, side);
  TaskCutter cutter(equivariant::kTaskPairs);
  for (int64_t g = 0; g < relation.groups; ++g) {
    const int64_t keys = relation.key_offsets[g + 1] - relation.key_offsets[g];
    const bool counts = keys <= largest_group;
    const int64_t pairs = others[g + 1] - others[g];
    cutter.add(g, counts ? rows[g + 1] - rows[g] : 0, pairs + equivariant::kRowCost);
  }
  return cutter.finish(relation.groups);
}

int64_t TablePlan::tasks_of(int phase) const {
  const std::vector<int64_t> counts{std::ssize(blocks), std::ssize(first_block) - 1,
                                    std::ssize(tasks)};
  return counts[phase];
}

template <class T>
TablePlan plan_tables(const TableAttention<T>& problem, TupleSide side) {
  read_simd_environment();
  TablePlan plan;
  plan.side = side;
  using equivariant::table_padded;
  const int64_t features = problem.key.width, values = problem.value.width, wide = values + 1;
  plan.table_size = equivariant::table_size(features, values);
  plan.first_block.push_back(0);
  for (const TableMember& member : problem.members) {
    const int32_t* const others = sides_of(member.relation, side).others;
    const std::vector<int64_t> meeting = rows_that_meet(problem, member);
    std::vector<int64_t>& large = plan.large.emplace_back(member.relation.groups, -1);
    for (int64_t g = 0; g < member.relation.groups; ++g) {
      const int64_t inside = others[g + 1] - others[g];
      if (!is_large_table(inside, meeting[g])) continue;
      large[g] = std::ssize(plan.first_block) - 1;
      for (int64_t begin = 0; begin < inside; begin += kLargeTableGroup) {
        plan.blocks.push_back({&member - problem.members.data(), g, begin,
                               std::min(begin + kLargeTableGroup, inside)});
      }
      plan.first_block.push_back(std::ssize(plan.blocks));
    }
  }
  // A table that a row meets costs as much as a row that is added to it.
  TaskCutter cutter(equivariant::kTaskTableRows);
  for (int64_t g = 0; g < problem.groups; ++g) {
    const int64_t met = problem.offsets[g + 1] - problem.offsets[g];
    int64_t inside = 0, made = 0;
    for (size_t m = 0; m < problem.members.size(); ++m) {
      const TableMember& member = problem.members[m];
      const int64_t group = member.group_of(g);
      if (group < 0) continue;
      const int32_t* const others = sides_of(member.relation, side).others;
      inside += others[group + 1] - others[group];
      if (plan.large[m][group] < 0) made += others[group + 1] - others[group];
    }
    if (inside == 0 || met == 0) {
      cutter.add(g, 0, 1);
    } else if (made == 0) {
      cutter.add(g, met, 1);
    } else {
      // If one task makes the table, the same task meets it.
      cutter.add(g, 1, std::min(made + met, equivariant::kTaskTableRows));
    }
  }
  plan.tasks = cutter.finish(problem.groups);
  plan.workspace_doubles = std::ssize(plan.blocks) * problem.heads * plan.table_size;
  plan.scratch_doubles =
      2 * plan.table_size +
      equivariant::kTableRows * (table_padded(features) + table_padded(wide) +
                                 std::max(table_padded(features), table_padded(wide)));
  return plan;
}

template TablePlan plan_tables(const TableAttention<float>&, TupleSide);
template TablePlan plan_tables(const TableAttention<double>&, TupleSide);

}  // namespace nsimplex::kernels
