// Adds rows to the feature-value tables of linear attention, and multiplies rows by these tables, for
// one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_EQUIVARIANT_TABLE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_EQUIVARIANT_TABLE_ROWS_INL_H_
#undef NSIMPLEX_KERNELS_EQUIVARIANT_TABLE_ROWS_INL_H_
#else
#define NSIMPLEX_KERNELS_EQUIVARIANT_TABLE_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/equivariant/equivariant_layout.h"
#include "kernels/cpu/equivariant/small_product-inl.h"
#include "kernels/cpu/equivariant/tuple_attention.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {

/// The contributions of rows to tables, and the reverse. A table is the sum over rows of a b^T,
/// where a is the features of a row and b its value and 1, or its gradient. The table of keys is
/// [features, values], followed by the sum of a alone, so that the 1 needs no separate vector;
/// that of queries is [wide, features]. At most kTableRows rows are processed at a time, widened to
/// double, so that all work is small products.
template <class T>
class TableRows {
 public:
  /// For a pass that writes `side`. Moves `scratch` past the memory that it uses.
  TableRows(const TableAttention<T>& problem, TupleSide side, double*& scratch)
      : problem_(problem),
        writes_queries_(side == TupleSide::queries),
        gradients_(problem.grad_out.data != nullptr),
        features_(problem.key.width),
        values_(problem.value.width),
        wide_(values_ + 1),
        padded_features_(table_padded(features_)),
        padded_values_(table_padded(values_)),
        padded_wide_(table_padded(wide_)) {
    const auto take = [&](int64_t count) {
      double* const own = scratch;
      scratch += count;
      return own;
    };
    a_ = take(kTableRows * padded_features_);
    b_ = take(kTableRows * padded_wide_);
    out_ = take(kTableRows * std::max(padded_features_, padded_wide_));
    turned_ = take(table_size(features_, values_));
    std::fill(a_, out_, 0.0);
  }

  /// Adds rows of the other side, times a sign, to a table, or begins it with them.
  void put(const int32_t* rows, int64_t count, int64_t head, double sign, double* table, bool add) {
    take(rows, count, head, !writes_queries_, sign);
    if (writes_queries_) {
      multiply(features_, padded_values_, count, {a_, 1, padded_features_}, b_, padded_wide_, table,
               padded_values_, add);
      sum_rows(count, padded_features_, a_, table + features_ * padded_values_, add);
    } else {
      multiply(wide_, padded_features_, count, {b_, 1, padded_wide_}, a_, padded_features_, table,
               padded_features_, add);
    }
  }

  /// Before rows meet a table: prepares products with it and with its transpose.
  void turn(const double* table) {
    if (!writes_queries_) {
      transpose(values_, features_, table, padded_features_, turned_, padded_values_);
    } else if (gradients_) {
      transpose(features_, values_, table, padded_values_, turned_, padded_features_);
    }
  }

  /// Adds the contributions of the prepared table to rows.
  void meet(const int32_t* rows, int64_t count, int64_t head, const double* table) {
    take(rows, count, head, writes_queries_, 1);
    writes_queries_ ? to_queries(rows, count, head, table) : to_keys(rows, count, head, table);
  }

  /// A row and a single row of the other side, if a class names one tuple: no table is needed.
  void meet_one(int32_t row, int32_t other, double sign) {
    const int32_t query = writes_queries_ ? row : other, key = writes_queries_ ? other : row;
    double* const key_a = a_ + padded_features_;
    double* const key_b = b_ + padded_wide_;
    for (int64_t h = 0; h < problem_.heads; ++h) {
      take(&query, 1, h, /*queries=*/true, 1);
      take_one(key, h, /*queries=*/false, 1, key_a, key_b);
      const int64_t place = row * problem_.heads + h;
      const double weight = sign * dot(a_, key_a, padded_features_);
      const auto of_weight = [&] { return sign * dot(b_, key_b, padded_wide_); };
      if (!writes_queries_) {
        add_scaled(of_weight(), a_, features_, problem_.grad_key + place * features_);
        add_scaled(weight, b_, values_, problem_.grad_value + place * values_);
        continue;
      }
      add_scaled(weight, key_b, wide_, problem_.sums + place * wide_);
      if (!gradients_) continue;
      add_scaled(of_weight(), key_a, features_, problem_.grad_query + place * features_);
      add_scaled(sign, key_a, features_, problem_.key_sums + place * features_);
    }
  }

 private:
  void take(const int32_t* rows, int64_t count, int64_t head, bool queries, double sign) {
    for (int64_t r = 0; r < count; ++r) {
      take_one(rows[r], head, queries, sign, a_ + r * padded_features_, b_ + r * padded_wide_);
    }
  }

  // a, times a sign, and b of a row of either side.
  void take_one(int64_t row, int64_t head, bool queries, double sign, double* a, double* b) const {
    widen((queries ? problem_.query : problem_.key).row(row, head), features_, a, sign);
    if (!queries) {
      widen(problem_.value.row(row, head), values_, b);
      b[values_] = 1;
    } else if (!writes_queries_) {
      widen(problem_.grad + (row * problem_.heads + head) * wide_, wide_, b);
    } else if (gradients_) {
      widen(problem_.grad_out.row(row, head), values_, b);
      b[values_] = 0;
    }
  }

  void to_queries(const int32_t* rows, int64_t count, int64_t head, const double* table) {
    const double* const sum = table + features_ * padded_values_;
    times_features(count, table);
    for (int64_t r = 0; r < count; ++r) {
      out_[r * padded_wide_ + values_] = dot(a_ + r * padded_features_, sum, padded_features_);
    }
    scatter(rows, count, head, padded_wide_, wide_, problem_.sums);
    if (!gradients_) return;
    times_values(count, values_, turned_);
    scatter(rows, count, head, padded_features_, features_, problem_.grad_query);
    for (int64_t r = 0; r < count; ++r) {
      add_scaled(1, sum, features_,
                 problem_.key_sums + (rows[r] * problem_.heads + head) * features_);
    }
  }

  void to_keys(const int32_t* rows, int64_t count, int64_t head, const double* table) {
    times_values(count, wide_, table);
    scatter(rows, count, head, padded_features_, features_, problem_.grad_key);
    times_features(count, turned_);
    scatter(rows, count, head, padded_wide_, values_, problem_.grad_value);
  }

  // out_ = a table, which is [features, values]
  void times_features(int64_t count, const double* table) {
    multiply(whole_tiles(count), padded_values_, features_, {a_, padded_features_, 1}, table,
             padded_values_, out_, padded_wide_, false);
  }

  // out_ = b table, which is [inner, features]
  void times_values(int64_t count, int64_t inner, const double* table) {
    multiply(whole_tiles(count), padded_features_, inner, {b_, padded_wide_, 1}, table,
             padded_features_, out_, padded_features_, false);
  }

  void scatter(const int32_t* rows, int64_t count, int64_t head, int64_t stride, int64_t width,
               double* to) const {
    for (int64_t r = 0; r < count; ++r) {
      add_scaled(1, out_ + r * stride, width, to + (rows[r] * problem_.heads + head) * width);
    }
  }

  const TableAttention<T>& problem_;
  bool writes_queries_, gradients_;
  int64_t features_, values_, wide_, padded_features_, padded_values_, padded_wide_;
  double *a_, *b_, *out_, *turned_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
