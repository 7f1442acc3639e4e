#include "causal/structure/equal_variance_order.h"

#include <algorithm>

namespace nsimplex::causal {
namespace {

// Below this part of its variance, what is left of a column is rounding.
constexpr double kNothingLeft = 1e-12;
// Variances that differ by less than this part are equal but for rounding, as those of all
// standardised columns: the first then comes first, on every machine.
constexpr double kEqual = 1e-9;

}  // namespace

Order equal_variance_order(const Matrix& covariance, const Precedence& precedence) {
  const int64_t features = covariance.rows();
  // Columns change places so that the rest always is one block at the end: order[k] is the column
  // that stands at k.
  Matrix rest = covariance;
  Order order(static_cast<size_t>(features));
  for (int64_t k = 0; k < features; ++k) order[static_cast<size_t>(k)] = k;
  OpenColumns columns(precedence);
  for (int64_t k = 0; k < features; ++k) {
    int64_t next = -1;
    for (int64_t i = k; i < features; ++i) {
      if (!columns.open(order[static_cast<size_t>(i)])) continue;
      if (next < 0 || rest(i, i) < (1 - kEqual) * rest(next, next)) next = i;
    }
    std::swap(order[static_cast<size_t>(k)], order[static_cast<size_t>(next)]);
    rest.row(k).swap(rest.row(next));
    rest.col(k).swap(rest.col(next));
    const int64_t placed = order[static_cast<size_t>(k)];
    columns.place(placed);
    if (rest(k, k) <= kNothingLeft * covariance(placed, placed)) continue;
    const int64_t left = features - k - 1;
    const Vector column = rest.col(k).tail(left);
    const double variance = rest(k, k);
    for (int64_t i = 0; i < left; ++i) {
      rest.row(k + 1 + i).tail(left).noalias() -= column[i] / variance * column.transpose();
    }
  }
  return order;
}

}  // namespace nsimplex::causal
