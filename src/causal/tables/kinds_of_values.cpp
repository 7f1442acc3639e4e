// The kinds of columns that the values of a table suggest.

#include "causal/tables/kinds_of_values.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace nsimplex::causal {
namespace {

constexpr int64_t kLeastRows = 50, kRepeats = 5;  // of a table, and of each value
constexpr size_t kMostCounts = 30;                // different values of a count
constexpr size_t kFewCategories = 3, kMostCategories = 5;

ColumnKind kind_of(const Vector& column) {
  std::multiset<double> values;
  std::set<double> different;
  for (const double value : column) {
    if (different.insert(value).second && different.size() > kMostCounts) {
      return ColumnKind::continuous;
    }
    values.insert(value);
  }
  const auto rows = [&](double value) { return static_cast<int64_t>(values.count(value)); };
  const bool often = std::ranges::all_of(different, [&](double v) { return rows(v) >= kRepeats; });
  const size_t count = different.size();
  if (count == 2) return often ? ColumnKind::binary : ColumnKind::continuous;
  const bool whole = std::ranges::all_of(different, [](double v) { return v == std::floor(v); });
  if (!whole || count < kFewCategories || *different.begin() != 0) return ColumnKind::continuous;
  const double last = *different.rbegin();
  const bool numbered = last == static_cast<double>(count - 1) && count <= kMostCategories;
  if (!numbered) return ColumnKind::count;
  // The largest counts are rare.
  const bool common = 4 * static_cast<int64_t>(count) * rows(last) > column.size();
  if (!common) return ColumnKind::count;
  return often ? ColumnKind::category : ColumnKind::continuous;
}

}  // namespace

std::vector<ColumnKind> kinds_of_values(TableView table) {
  if (table.rows() < kLeastRows) return {};
  std::vector<ColumnKind> kinds;
  kinds.reserve(static_cast<size_t>(table.cols()));
  for (int64_t column = 0; column < table.cols(); ++column) {
    kinds.push_back(kind_of(table.col(column)));
  }
  const auto continuous = [](ColumnKind kind) { return kind == ColumnKind::continuous; };
  return std::ranges::all_of(kinds, continuous) ? std::vector<ColumnKind>() : kinds;
}

}  // namespace nsimplex::causal
