// Centres and scales the table on which estimators work.

#include "causal/structure/prepare.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "causal/tables/column_error.h"
#include "causal/tables/table_arguments.h"
#include "causal/tables/usable_table.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

// largest difference between the binary exponents of the deviations of columns
constexpr int kMostApart = 400;

[[noreturn]] void fail(const std::string& why) { throw InputError("table: " + why); }

}  // namespace

Matrix prepared_table(TableView table, bool standardise) {
  if (table.rows() < 2 || table.cols() < 2) {
    fail(std::string("expected at least 2 rows and 2 columns, got ")
             .append(std::to_string(table.rows()))
             .append(" x ")
             .append(std::to_string(table.cols())));
  }
  require_finite("table", table);
  const auto rows = static_cast<double>(table.rows());
  Matrix prepared(table.rows(), table.cols());
  // binary exponent of each deviation
  std::vector<int> exponents(static_cast<size_t>(table.cols()));
  for (int64_t column = 0; column < table.cols(); ++column) {
    if (is_constant(table.col(column))) {
      throw ColumnError("table: column {} is constant", {column});
    }
    // Scales every column to about 1, so that neither sums nor squares leave the range of double.
    const int own = std::ilogb(table.col(column).cwiseAbs().maxCoeff()) + 1;
    auto scaled = prepared.col(column);
    scaled = table.col(column).unaryExpr([&](double x) { return std::scalbn(x, -own); });
    scaled.array() -= scaled.mean();
    const double deviation = std::sqrt(scaled.squaredNorm() / rows);
    if (standardise) {
      scaled /= deviation;
      continue;
    }
    exponents[static_cast<size_t>(column)] = own + std::ilogb(deviation);
    scaled = scaled.unaryExpr([&](double x) { return std::scalbn(x, -std::ilogb(deviation)); });
  }
  if (standardise) return prepared;
  const auto [least, most] = std::ranges::minmax_element(exponents);
  if (*most - *least > kMostApart) {
    throw ColumnError(std::string("table: column {} varies 2^")
                          .append(std::to_string(*most - *least))
                          .append(" times less than column {}; expected at most 2^400, or "
                                  "standardised columns"),
                      {least - exponents.begin(), most - exponents.begin()});
  }
  const int common = *least < -kMostApart / 2 || *most > kMostApart / 2 ? *most : 0;
  for (int64_t column = 0; column < table.cols(); ++column) {
    const int shift = exponents[static_cast<size_t>(column)] - common;
    prepared.col(column) =
        prepared.col(column).unaryExpr([&](double x) { return std::scalbn(x, shift); }).eval();
  }
  return prepared;
}

void require_moderate_scale(TableView table, const std::string& estimator) {
  constexpr double kLeast = 1e-30, kMost = 1e30;
  const double range =
      (table.colwise().maxCoeff() - table.colwise().minCoeff()).cwiseAbs().maxCoeff();
  if (range >= kLeast && range <= kMost) return;
  std::ostringstream number;
  number << range;
  fail(std::string("expected columns of which the widest spans 1e-30 to 1e30 for ")
           .append(estimator)
           .append(", whose l1 norm has the units of the columns, got ")
           .append(number.str())
           .append("; rescale or standardise them"));
}

}  // namespace nsimplex::causal
