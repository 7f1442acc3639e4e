#include <algorithm>
#include <span>

#include "kernels/cpu/equivariant/layout.h"
#include "kernels/cpu/equivariant/tuple_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/equivariant/table_attention.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/equivariant/channels-inl.h"
#include "kernels/cpu/equivariant/small_product-inl.h"

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
      const int64_t rows = row_offsets()[g + 1] - row_offsets()[g];
      meet(g, own.row_begin, own.row_end > 0 ? own.row_end : rows);
    }
  }

 private:
  bool writes_queries() const { return pass_ != TablePass::grad_key_value; }
  const TupleRelation& relation() const { return problem_.relation; }
  const int32_t* row_offsets() const {
    return writes_queries() ? relation().query_offsets : relation().key_offsets;
  }
  const int32_t* other_offsets() const {
    return writes_queries() ? relation().key_offsets : relation().query_offsets;
  }
  const int32_t* rows() const { return writes_queries() ? relation().queries : relation().keys; }
  const int32_t* others() const { return writes_queries() ? relation().keys : relation().queries; }

  double* workspace_table(int64_t block, int64_t head) const {
    return workspace_ + (block * problem_.heads + head) * plan_.table_size;
  }

  /// Up to kTableRows rows of a list from `next` on that take part; moves `next` behind them.
  int64_t take_rows(const int32_t* list, int64_t& next, int64_t end, bool queries,
                    int32_t* taken) const {
    int64_t count = 0;
    for (; next < end && count < kTableRows; ++next) {
      if (queries && problem_.skip != nullptr && problem_.skip[list[next]] != 0) continue;
      taken[count++] = list[next];
    }
    return count;
  }

  // a and b of rows of either side.
  void take(const int32_t* taken, int64_t count, int64_t head, bool queries) {
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = taken[r];
      double* const b = b_ + r * padded_wide_;
      widen((queries ? problem_.query : problem_.key).row(row, head), features_,
            a_ + r * padded_features_);
      if (!queries) {
        widen(problem_.value.row(row, head), values_, b);
        b[values_] = 1;
      } else if (pass_ != TablePass::forward) {
        widen(problem_.grad + (row * problem_.heads + head) * wide_, wide_, b);
      }
    }
  }
  static HWY_INLINE void widen(const T* from, int64_t count, double* to) {
    const Wide d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t c = 0;
    for (; c + lanes <= count; c += lanes) hn::StoreU(load(d, from + c), d, to + c);
    for (; c < count; ++c) to[c] = static_cast<double>(from[c]);
  }

  // The tables of rows [begin, end) of the other side of a group, of some heads; turned but in the
  // forward pass. Few rows at a time, so that all heads find them in the cache.
  void make_tables(int64_t group, int64_t begin, int64_t end, int64_t first_head, int64_t heads,
                   double* tables) {
    const int32_t* const list = others() + other_offsets()[group];
    int32_t taken[kTableRows];
    bool add = false;
    for (int64_t next = begin; next < end;) {
      const int64_t count = take_rows(list, next, end, !writes_queries(), taken);
      for (int64_t h = 0; h < heads; ++h) {
        take(taken, count, first_head + h, !writes_queries());
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
      sum_rows(count, padded_features_, a_, sum_of_features(table), add);
    } else {
      multiply(wide_, padded_features_, count, {b_, 1, padded_wide_}, a_, padded_features_, table,
               padded_features_, add);
    }
  }

  double* sum_of_features(double* table) const { return table + features_ * padded_values_; }
  const double* sum_of_features(const double* table) const {
    return table + features_ * padded_values_;
  }

  void sum_block(const TablePlan::Block& block) {
    const int64_t number = &block - plan_.blocks.data();
    make_tables(block.group, block.begin, block.end, 0, problem_.heads, workspace_table(number, 0));
  }

  void merge_blocks(int64_t large) {
    const int64_t first = plan_.first_block[large], size = problem_.heads * plan_.table_size;
    double* const to = workspace_table(first, 0);
    for (int64_t b = first + 1; b < plan_.first_block[large + 1]; ++b) {
      const double* const from = workspace_table(b, 0);
      for (int64_t c = 0; c < size; ++c) to[c] += from[c];
    }
  }

  // Rows [begin, end) of a group take what they need from its table.
  void meet(int64_t group, int64_t begin, int64_t end) {
    const int64_t inside = other_offsets()[group + 1] - other_offsets()[group];
    const int32_t* const list = rows() + row_offsets()[group];
    int32_t taken[kTableRows];
    int64_t next = begin;
    int64_t count = take_rows(list, next, end, writes_queries(), taken);
    if (inside == 0 || count == 0) return;
    if (inside == 1 && count == 1 && next == end) {
      return meet_one(taken[0], others()[other_offsets()[group]]);
    }
    const int64_t large = plan_.large[group];
    if (large >= 0) {
      const double* const tables = workspace_table(plan_.first_block[large], 0);
      return meet_tables({list, static_cast<size_t>(end)}, begin, 0, problem_.heads, tables);
    }
    for (int64_t h = 0; h < problem_.heads; ++h) {
      make_tables(group, 0, inside, h, 1, table_);
      meet_tables({list, static_cast<size_t>(end)}, begin, h, 1, table_);
    }
  }

  // Rows of a list from `next` on and the tables of some heads.
  void meet_tables(std::span<const int32_t> list, int64_t next, int64_t first_head, int64_t heads,
                   const double* tables) {
    int32_t taken[kTableRows];
    while (next < std::ssize(list)) {
      const int64_t count =
          take_rows(list.data(), next, std::ssize(list), writes_queries(), taken);
      for (int64_t h = 0; h < heads; ++h) {
        const double* const table = tables + h * plan_.table_size;
        if (pass_ == TablePass::grad_key_value) turn(table);
        take(taken, count, first_head + h, writes_queries());
        contract(taken, count, first_head + h, table);
      }
    }
  }

  // turned_[features, values] of table [wide, features].
  void turn(const double* table) {
    for (int64_t f = 0; f < features_; ++f) {
      double* const to = turned_ + f * padded_values_;
      for (int64_t c = 0; c < values_; ++c) to[c] = table[c * padded_features_ + f];
      std::fill(to + values_, to + padded_values_, 0.0);
    }
  }

  void contract(const int32_t* taken, int64_t count, int64_t head, const double* table) {
    if (pass_ == TablePass::forward) {
      with_features(count, table);
      for (int64_t r = 0; r < count; ++r) {
        out_[r * padded_wide_ + values_] =
            dot(a_ + r * padded_features_, sum_of_features(table), padded_features_);
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
  void meet_one(int32_t row, int32_t other) {
    if (!writes_queries() && problem_.skip != nullptr && problem_.skip[other] != 0) return;
    for (int64_t h = 0; h < problem_.heads; ++h) {
      // The query's a and b come first, then the key's.
      const int32_t taken[] = {writes_queries() ? row : other, writes_queries() ? other : row};
      take(taken, 1, h, /*queries=*/true);
      double* const key_a = a_ + padded_features_;
      double* const key_b = b_ + padded_wide_;
      widen(problem_.key.row(taken[1], h), features_, key_a);
      widen(problem_.value.row(taken[1], h), values_, key_b);
      key_b[values_] = 1;
      const int64_t place = row * problem_.heads + h;
      if (pass_ == TablePass::forward) {
        add_scaled(dot(a_, key_a, padded_features_), key_b, wide_, problem_.sums + place * wide_);
        continue;
      }
      const double slope = dot(b_, key_b, padded_wide_);
      if (pass_ == TablePass::grad_query) {
        add_scaled(slope, key_a, features_, problem_.grad_query + place * features_);
        continue;
      }
      add_scaled(slope, a_, features_, problem_.grad_key + place * features_);
      add_scaled(dot(a_, key_a, padded_features_), b_, values_,
                 problem_.grad_value + place * values_);
    }
  }

  HWY_INLINE void add_scaled(double factor, const double* from, int64_t count, double* to) const {
    const double signed_factor = problem_.sign * factor;
    const Wide d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto wide = hn::Set(d, signed_factor);
    int64_t c = 0;
    for (; c + lanes <= count; c += lanes) {
      hn::StoreU(hn::MulAdd(wide, hn::LoadU(d, from + c), hn::LoadU(d, to + c)), d, to + c);
    }
    for (; c < count; ++c) to[c] += signed_factor * from[c];
  }

  const TableAttention<T>& problem_;
  TablePass pass_;
  const TablePlan& plan_;
  int64_t features_, values_, wide_, padded_features_, padded_values_, padded_wide_;
  double *workspace_, *a_, *b_, *out_, *table_, *turned_;
};

void tables_f32(const TableAttention<float>& problem, TablePass pass, const TablePlan& plan,
                int phase, int64_t task, double* workspace, double* scratch) {
  TableRun<float>(problem, pass, plan, workspace, scratch).run(phase, task);
}
void tables_f64(const TableAttention<double>& problem, TablePass pass, const TablePlan& plan,
                int phase, int64_t task, double* workspace, double* scratch) {
  TableRun<double>(problem, pass, plan, workspace, scratch).run(phase, task);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace equivariant {
HWY_EXPORT(tables_f32);
HWY_EXPORT(tables_f64);
}  // namespace equivariant

void run_tables(const TableAttention<float>& problem, TablePass pass, const TablePlan& plan,
                int phase, int64_t task, double* workspace, double* scratch) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(tables_f32)(problem, pass, plan, phase, task, workspace, scratch);
}
void run_tables(const TableAttention<double>& problem, TablePass pass, const TablePlan& plan,
                int phase, int64_t task, double* workspace, double* scratch) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(tables_f64)(problem, pass, plan, phase, task, workspace, scratch);
}

}  // namespace nsimplex::kernels
#endif
