// Attention by tables: one pass over the groups of a task, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_EQUIVARIANT_TABLE_RUN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_EQUIVARIANT_TABLE_RUN_INL_H_
#undef NSIMPLEX_KERNELS_EQUIVARIANT_TABLE_RUN_INL_H_
#else
#define NSIMPLEX_KERNELS_EQUIVARIANT_TABLE_RUN_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cpu/equivariant/table_rows-inl.h"
#include "kernels/cpu/equivariant/tuple_attention.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {

/// Determines which rows make which tables, and which rows meet them.
template <class T>
class TableRun {
 public:
  TableRun(const TableAttention<T>& problem, const TablePlan& plan, double* workspace,
           double* scratch)
      : problem_(problem),
        plan_(plan),
        rows_(problem, plan.side, scratch),
        workspace_(workspace),
        table_(scratch) {}

  void run(int phase, int64_t task) {
    if (phase == 0) return sum_block(plan_.blocks[task]);
    if (phase == 1) return merge_blocks(task);
    const GroupTask& own = plan_.tasks[task];
    for (int64_t g = own.group_begin; g < own.group_end; ++g) {
      const int64_t rows = problem_.offsets[g + 1] - problem_.offsets[g];
      meet(g, own.row_begin, own.row_end > 0 ? own.row_end : rows);
    }
  }

 private:
  bool writes_queries() const { return plan_.side == TupleSide::queries; }

  // The other side's rows of a group of a relation.
  std::span<const int32_t> others(const TupleRelation& relation, int64_t group) const {
    const auto [offsets, rows] = writes_queries()
                                     ? std::pair{relation.key_offsets, relation.keys}
                                     : std::pair{relation.query_offsets, relation.queries};
    return {rows + offsets[group], rows + offsets[group + 1]};
  }

  double* workspace_table(int64_t block, int64_t head) const {
    return workspace_ + (block * problem_.heads + head) * plan_.table_size;
  }

  bool is_skipped(int32_t query) const {
    return problem_.skip != nullptr && problem_.skip[query] != 0;
  }

  /// Up to kTableRows participating rows of a list from `next` on; moves `next` past them.
  int64_t take_rows(std::span<const int32_t> list, int64_t& next, bool queries,
                    int32_t* taken) const {
    int64_t count = 0;
    for (; next < std::ssize(list) && count < kTableRows; ++next) {
      if (queries && is_skipped(list[next])) continue;
      taken[count++] = list[next];
    }
    return count;
  }

  // Adds rows of the other side to the tables of some heads, or begins these with them. A few rows
  // at a time, so that all heads find them in the cache.
  void make_tables(std::span<const int32_t> list, double sign, int64_t first_head, int64_t heads,
                   double* tables, bool add) {
    int32_t taken[kTableRows];
    for (int64_t next = 0; next < std::ssize(list); add = true) {
      const int64_t count = take_rows(list, next, !writes_queries(), taken);
      for (int64_t h = 0; h < heads; ++h) {
        rows_.put(taken, count, first_head + h, sign, tables + h * plan_.table_size, add);
      }
    }
  }

  void sum_block(const TablePlan::Block& block) {
    const TableMember& member = problem_.members[block.member];
    const auto list = others(member.relation, block.group);
    make_tables(list.subspan(block.begin, block.end - block.begin), member.sign, 0, problem_.heads,
                workspace_table(&block - plan_.blocks.data(), 0), /*add=*/false);
  }

  void merge_blocks(int64_t large) {
    const int64_t first = plan_.first_block[large], size = problem_.heads * plan_.table_size;
    double* const to = workspace_table(first, 0);
    for (int64_t b = first + 1; b < plan_.first_block[large + 1]; ++b) {
      add_scaled(1, workspace_table(b, 0), size, to);
    }
  }

  // The table of one member that a group meets.
  struct Met {
    std::span<const int32_t> others;
    double sign;
    const double* tables;  // of all heads where the group is large
  };

  // Adds the table of a group to its rows [begin, end).
  void meet(int64_t group, int64_t begin, int64_t end) {
    const std::span list{problem_.rows + problem_.offsets[group], static_cast<size_t>(end)};
    int32_t taken[kTableRows];
    int64_t next = begin;
    const int64_t count = take_rows(list, next, writes_queries(), taken);
    if (count == 0) return;
    find_met(group);
    if (met_.empty()) return;
    const auto is_one = [](const Met& each) { return each.others.size() == 1; };
    if (count == 1 && next == end && std::ranges::all_of(met_, is_one)) {
      for (const Met& each : met_) {
        if (!writes_queries() && is_skipped(each.others[0])) continue;
        rows_.meet_one(taken[0], each.others[0], each.sign);
      }
      return;
    }
    if (met_.size() == 1 && met_[0].tables != nullptr) {
      return meet_tables(list, begin, 0, problem_.heads, met_[0].tables);
    }
    for (int64_t h = 0; h < problem_.heads; ++h) {
      for (const Met& each : met_) {
        const bool first = &each == met_.data();
        if (each.tables == nullptr) {
          make_tables(each.others, each.sign, h, 1, table_, /*add=*/!first);
          continue;
        }
        if (first) std::fill(table_, table_ + plan_.table_size, 0.0);
        add_scaled(1, each.tables + h * plan_.table_size, plan_.table_size, table_);
      }
      meet_tables(list, begin, h, 1, table_);
    }
  }

  void find_met(int64_t group) {
    met_.clear();
    for (size_t m = 0; m < problem_.members.size(); ++m) {
      const TableMember& member = problem_.members[m];
      const int64_t own = member.group_of(group);
      if (own < 0) continue;
      const auto inside = others(member.relation, own);
      const int64_t large = plan_.large[m][own];
      if (inside.empty()) continue;
      met_.push_back({inside, member.sign,
                      large < 0 ? nullptr : workspace_table(plan_.first_block[large], 0)});
    }
  }

  // The rows of a list from `next` on meet the tables of some heads.
  void meet_tables(std::span<const int32_t> list, int64_t next, int64_t first_head, int64_t heads,
                   const double* tables) {
    int32_t taken[kTableRows];
    for (bool first = true; next < std::ssize(list); first = false) {
      const int64_t count = take_rows(list, next, writes_queries(), taken);
      for (int64_t h = 0; h < heads; ++h) {
        const double* const table = tables + h * plan_.table_size;
        if (first || heads > 1) rows_.turn(table);
        rows_.meet(taken, count, first_head + h, table);
      }
    }
  }

  const TableAttention<T>& problem_;
  const TablePlan& plan_;
  TableRows<T> rows_;
  double *workspace_, *table_;
  std::vector<Met> met_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
