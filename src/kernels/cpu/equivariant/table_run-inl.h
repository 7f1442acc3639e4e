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

#include "kernels/cpu/equivariant/channels-inl.h"
#include "kernels/cpu/equivariant/layout.h"
#include "kernels/cpu/equivariant/small_product-inl.h"
#include "kernels/cpu/equivariant/tuple_attention.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {

/// What a pass over tables puts into them and takes out. A table is the sum over rows of a b^T, a
/// the features of a row and b its value and 1, or its gradient. Going forward it is [features,
/// values] and behind that the sum of a alone, so that the 1 does not cost a vector of its own;
/// else turned, [wide, features]. Rows are taken in blocks, widened to double, so that all of it is
/// small products.
template <class T>
class TableRun {
 public:
  TableRun(const TableAttention<T>& problem, TablePass pass, const TablePlan& plan,
           double* workspace, double* scratch)
      : problem_(problem),
        pass_(pass),
        plan_(plan),
        features_(problem.key.width),
        values_(problem.value.width),
        wide_(values_ + 1),
        padded_features_(table_padded(features_)),
        padded_values_(table_padded(values_)),
        padded_wide_(table_padded(wide_)),
        workspace_(workspace) {
    const auto take = [&](int64_t count) {
      double* const own = scratch;
      scratch += count;
      return own;
    };
    a_ = take(kTableRows * padded_features_);
    b_ = take(kTableRows * padded_wide_);
    out_ = take(kTableRows * std::max(padded_features_, padded_wide_));
    table_ = take(plan.table_size);
    turned_ = take(plan.table_size);
    std::fill(a_, out_, 0.0);
  }

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
  bool writes_queries() const { return pass_ != TablePass::grad_key_value; }

  // The other side's rows of a relation's group.
  std::span<const int32_t> others(const TupleRelation& relation, int64_t group) const {
    const auto [offsets, rows] = writes_queries()
                                     ? std::pair{relation.key_offsets, relation.keys}
                                     : std::pair{relation.query_offsets, relation.queries};
    return {rows + offsets[group], rows + offsets[group + 1]};
  }

  double* workspace_table(int64_t block, int64_t head) const {
    return workspace_ + (block * problem_.heads + head) * plan_.table_size;
  }

  /// Up to kTableRows rows of a list from `next` on that take part; moves `next` behind them.
  int64_t take_rows(std::span<const int32_t> list, int64_t& next, bool queries,
                    int32_t* taken) const {
    int64_t count = 0;
    for (; next < std::ssize(list) && count < kTableRows; ++next) {
      if (queries && problem_.skip != nullptr && problem_.skip[list[next]] != 0) continue;
      taken[count++] = list[next];
    }
    return count;
  }

  // a, times a sign, and b of rows of either side.
  void take(const int32_t* taken, int64_t count, int64_t head, bool queries, double sign,
            bool needs_a = true) {
    const HeadRows<T>& a = queries ? problem_.query : problem_.key;
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = taken[r];
      double* const b = b_ + r * padded_wide_;
      if (needs_a) widen(a.row(row, head), features_, a_ + r * padded_features_, sign);
      if (!queries) {
        widen(problem_.value.row(row, head), values_, b);
        b[values_] = 1;
      } else if (pass_ != TablePass::forward) {
        widen(problem_.grad + (row * problem_.heads + head) * wide_, wide_, b);
      }
    }
  }

  // Adds rows of the other side to the tables of some heads, or begins with them; turned but in
  // the forward pass. Few rows at a time, so that all heads find them in the cache.
  void make_tables(std::span<const int32_t> list, double sign, int64_t first_head, int64_t heads,
                   double* tables, bool add) {
    int32_t taken[kTableRows];
    for (int64_t next = 0; next < std::ssize(list);) {
      const int64_t count = take_rows(list, next, !writes_queries(), taken);
      for (int64_t h = 0; h < heads; ++h) {
        take(taken, count, first_head + h, !writes_queries(), sign);
        put(count, tables + h * plan_.table_size, add);
      }
      add = true;
    }
  }

  // Rows that were taken into a table.
  void put(int64_t count, double* table, bool add) {
    if (pass_ == TablePass::forward) {
      multiply(features_, padded_values_, count, {a_, 1, padded_features_}, b_, padded_wide_, table,
               padded_values_, add);
      sum_rows(count, padded_features_, a_, table + sum_place(), add);
    } else {
      multiply(wide_, padded_features_, count, {b_, 1, padded_wide_}, a_, padded_features_, table,
               padded_features_, add);
    }
  }

  // Where a table has the sum of features.
  int64_t sum_place() const { return features_ * padded_values_; }

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

  // What a group meets of one member.
  struct Met {
    std::span<const int32_t> others;
    double sign;
    const double* tables;  // of all heads where the group is large
  };

  // Rows [begin, end) of a group take what they need from its table.
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
      for (const Met& each : met_) meet_one(taken[0], each.others[0], each.sign);
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

  // Rows of a list from `next` on and the tables of some heads.
  void meet_tables(std::span<const int32_t> list, int64_t next, int64_t first_head, int64_t heads,
                   const double* tables) {
    int32_t taken[kTableRows];
    while (next < std::ssize(list)) {
      const int64_t count = take_rows(list, next, writes_queries(), taken);
      for (int64_t h = 0; h < heads; ++h) {
        const double* const table = tables + h * plan_.table_size;
        if (pass_ == TablePass::grad_key_value) {
          transpose(values_, features_, table, padded_features_, turned_, padded_values_);
        }
        // The gradient of a query does not depend on it.
        take(taken, count, first_head + h, writes_queries(), 1, pass_ != TablePass::grad_query);
        contract(taken, count, first_head + h, table);
      }
    }
  }

  void contract(const int32_t* taken, int64_t count, int64_t head, const double* table) {
    if (pass_ == TablePass::forward) {
      with_features(count, table);
      for (int64_t r = 0; r < count; ++r) {
        out_[r * padded_wide_ + values_] =
            dot(a_ + r * padded_features_, table + sum_place(), padded_features_);
      }
      return scatter(taken, count, head, padded_wide_, wide_, problem_.sums);
    }
    multiply(whole_tiles(count), padded_features_, wide_, {b_, padded_wide_, 1}, table,
             padded_features_, out_, padded_features_, false);
    const bool of_query = pass_ == TablePass::grad_query;
    scatter(taken, count, head, padded_features_, features_,
            of_query ? problem_.grad_query : problem_.grad_key);
    if (of_query) return;
    with_features(count, turned_);
    scatter(taken, count, head, padded_wide_, values_, problem_.grad_value);
  }

  // out_ = a table, the values alone
  void with_features(int64_t count, const double* table) {
    multiply(whole_tiles(count), padded_values_, features_, {a_, padded_features_, 1}, table,
             padded_values_, out_, padded_wide_, false);
  }

  void scatter(const int32_t* taken, int64_t count, int64_t head, int64_t stride, int64_t width,
               double* to) const {
    for (int64_t r = 0; r < count; ++r) {
      add_scaled(1, out_ + r * stride, width, to + (taken[r] * problem_.heads + head) * width);
    }
  }

  // A group of one row on either side, as where a class names a single tuple: no table.
  void meet_one(int32_t row, int32_t other, double sign) {
    if (!writes_queries() && problem_.skip != nullptr && problem_.skip[other] != 0) return;
    for (int64_t h = 0; h < problem_.heads; ++h) {
      // The query's a and b come first, then the key's.
      const int32_t taken[] = {writes_queries() ? row : other, writes_queries() ? other : row};
      take(taken, 1, h, /*queries=*/true, 1);
      double* const key_a = a_ + padded_features_;
      double* const key_b = b_ + padded_wide_;
      widen(problem_.key.row(taken[1], h), features_, key_a);
      widen(problem_.value.row(taken[1], h), values_, key_b);
      key_b[values_] = 1;
      const int64_t place = row * problem_.heads + h;
      if (pass_ == TablePass::forward) {
        add_scaled(sign * dot(a_, key_a, padded_features_), key_b, wide_,
                   problem_.sums + place * wide_);
        continue;
      }
      const double slope = sign * dot(b_, key_b, padded_wide_);
      if (pass_ == TablePass::grad_query) {
        add_scaled(slope, key_a, features_, problem_.grad_query + place * features_);
        continue;
      }
      add_scaled(slope, a_, features_, problem_.grad_key + place * features_);
      add_scaled(sign * dot(a_, key_a, padded_features_), b_, values_,
                 problem_.grad_value + place * values_);
    }
  }

  const TableAttention<T>& problem_;
  TablePass pass_;
  const TablePlan& plan_;
  int64_t features_, values_, wide_, padded_features_, padded_values_, padded_wide_;
  double *workspace_, *a_, *b_, *out_, *table_, *turned_;
  std::vector<Met> met_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
