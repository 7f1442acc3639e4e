#include "causal/structure/prepare.h"

#include <cmath>
#include <string>

#include "causal/tables/observations.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

[[noreturn]] void fail(const std::string& why) { throw InputError("table: " + why); }

void require_finite(TableView table) {
  for (int64_t row = 0; row < table.rows(); ++row) {
    for (int64_t column = 0; column < table.cols(); ++column) {
      if (std::isfinite(table(row, column))) continue;
      fail(std::string("expected finite numbers, got ")
               .append(std::to_string(table(row, column)))
               .append(" in row ")
               .append(std::to_string(row))
               .append(", column ")
               .append(std::to_string(column)));
    }
  }
}

}  // namespace

Matrix prepared_table(TableView table, bool standardise) {
  if (table.rows() < 2 || table.cols() < 2) {
    fail(std::string("expected at least 2 rows and 2 columns, got ")
             .append(std::to_string(table.rows()))
             .append(" x ")
             .append(std::to_string(table.cols())));
  }
  require_finite(table);
  Matrix prepared = table.rowwise() - table.colwise().mean();
  for (int64_t column = 0; column < table.cols(); ++column) {
    if (is_constant(table.col(column))) {
      fail(std::string("column ").append(std::to_string(column)).append(" is constant"));
    }
    if (!standardise) continue;
    prepared.col(column) /=
        std::sqrt(prepared.col(column).squaredNorm() / static_cast<double>(table.rows()));
  }
  return prepared;
}

}  // namespace nsimplex::causal
