#include <algorithm>

#include "kernels/cpu/equivariant/layout.h"
#include "kernels/cpu/equivariant/tuple_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/equivariant/table_attention.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Wide = hn::CappedTag<double, kTableStep>;

/// What a pass over tables puts into them and takes out: a table is the sum over rows of a (x) b, a
/// the features of a row and b its value and 1, or its gradient.
template <class T>
class TableRun {
 public:
  TableRun(const TableAttention<T>& problem, TablePass pass, const TablePlan& plan,
           double* workspace, double* scratch)
      : problem_(problem), pass_(pass), plan_(plan), workspace_(workspace), table_(scratch) {
    features_ = problem.key.width;
    wide_ = problem.value.width + 1;
    padded_ = (wide_ + kTableStep - 1) / kTableStep * kTableStep;
    a_ = table_ + plan.table_size;
    b_ = a_ + (features_ + 7) / 8 * 8;
    out_ = b_ + padded_;
    std::fill(b_, b_ + padded_, 0.0);
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
  bool skipped(int64_t query) const {
    return problem_.skip != nullptr && problem_.skip[query] != 0;
  }

  double* workspace_table(int64_t block, int64_t head) const {
    return workspace_ + (block * problem_.heads + head) * plan_.table_size;
  }

  // a and b of a row of either side.
  void load_key(int64_t row, int64_t head) {
    widen(problem_.key.row(row, head), features_, a_);
    widen(problem_.value.row(row, head), wide_ - 1, b_);
    b_[wide_ - 1] = 1;
  }
  void load_query(int64_t row, int64_t head) {
    widen(problem_.query.row(row, head), features_, a_);
    if (pass_ != TablePass::forward) {
      widen(problem_.grad + (row * problem_.heads + head) * wide_, wide_, b_);
    }
  }
  static void widen(const T* from, int64_t count, double* to) {
    for (int64_t c = 0; c < count; ++c) to[c] = static_cast<double>(from[c]);
  }

  // Adds a (x) b of rows [begin, end) of the other side of a group.
  void add_rows(int64_t group, int64_t begin, int64_t end, int64_t head, double* table) {
    std::fill(table, table + plan_.table_size, 0.0);
    const int32_t* const list = others() + other_offsets()[group];
    const Wide d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = begin; i < end; ++i) {
      if (writes_queries()) {
        load_key(list[i], head);
      } else {
        if (skipped(list[i])) continue;
        load_query(list[i], head);
      }
      for (int64_t f = 0; f < features_; ++f) {
        const auto a = hn::Set(d, a_[f]);
        double* const to = table + f * padded_;
        for (int64_t c = 0; c < padded_; c += lanes) {
          hn::StoreU(hn::MulAdd(a, hn::LoadU(d, b_ + c), hn::LoadU(d, to + c)), d, to + c);
        }
      }
    }
  }

  void sum_block(const TablePlan::Block& block) {
    const int64_t number = &block - plan_.blocks.data();
    for (int64_t h = 0; h < problem_.heads; ++h) {
      add_rows(block.group, block.begin, block.end, h, workspace_table(number, h));
    }
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
    const auto takes_part = [&](int64_t i) { return !writes_queries() || !skipped(list[i]); };
    while (begin < end && !takes_part(begin)) ++begin;
    if (inside == 0 || begin >= end) return;
    const int64_t large = plan_.large[group];
    for (int64_t h = 0; h < problem_.heads; ++h) {
      const double* table = table_;
      if (large >= 0) {
        table = workspace_table(plan_.first_block[large], h);
      } else {
        add_rows(group, 0, inside, h, table_);
      }
      for (int64_t i = begin; i < end; ++i) {
        if (takes_part(i)) take(list[i], h, table);
      }
    }
  }

  void take(int64_t row, int64_t head, const double* table) {
    const int64_t place = row * problem_.heads + head;
    if (pass_ == TablePass::grad_key_value) {
      load_key(row, head);
      contract_values(table, problem_.grad_key + place * features_);
      contract_features(table, problem_.grad_value + place * (wide_ - 1), wide_ - 1);
      return;
    }
    load_query(row, head);
    if (pass_ == TablePass::forward) {
      contract_features(table, problem_.sums + place * wide_, wide_);
    } else {
      contract_values(table, problem_.grad_query + place * features_);
    }
  }

  // to += sign a^T table
  void contract_features(const double* table, double* to, int64_t count) {
    const Wide d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t c = 0; c < padded_; c += lanes) {
      auto sum = hn::Zero(d);
      for (int64_t f = 0; f < features_; ++f) {
        sum = hn::MulAdd(hn::Set(d, a_[f]), hn::LoadU(d, table + f * padded_ + c), sum);
      }
      hn::StoreU(sum, d, out_ + c);
    }
    for (int64_t c = 0; c < count; ++c) to[c] += problem_.sign * out_[c];
  }

  // to += sign table b
  void contract_values(const double* table, double* to) {
    const Wide d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t f = 0; f < features_; ++f) {
      auto sum = hn::Zero(d);
      for (int64_t c = 0; c < padded_; c += lanes) {
        sum = hn::MulAdd(hn::LoadU(d, table + f * padded_ + c), hn::LoadU(d, b_ + c), sum);
      }
      to[f] += problem_.sign * hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }

  const TableAttention<T>& problem_;
  TablePass pass_;
  const TablePlan& plan_;
  double *workspace_, *table_, *a_, *b_, *out_;
  int64_t features_, wide_, padded_;
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
