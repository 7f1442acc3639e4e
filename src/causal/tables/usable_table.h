#pragma once

#include <nsimplex/causal_options.h>

#include <string>
#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

struct ObservationRules {
  MissingValues missing = MissingValues::refuse;
  bool drop = false;  ///< constant columns and copies are left out, instead of refused
};

/// A table that a causal graph can be learned from: at least two rows and two columns, all numbers
/// there, no column constant, no two equal.
struct Observations {
  std::vector<std::string> names;    ///< of the columns; empty where the table has none
  Matrix values;                     ///< [rows, columns]
  std::vector<int64_t> columns;      ///< their numbers in the table
  std::vector<std::string> dropped;  ///< what was left out, and why: "b: constant", "c: equals a"
  int64_t dropped_rows = 0;
  int64_t filled = 0;  ///< values that a mean stands for
};

/// Whether numbers differ by no more than rounding: their deviation is at most 10^-12 of the
/// largest of them. The same at every scale.
bool is_constant(const Eigen::Ref<const Eigen::VectorXd, 0, Eigen::InnerStride<>>& values);

/// Takes a table [rows, columns] (NaN where a value is missing) for observations. `names` may be
/// empty. Throws InputError "cannot use SOURCE: WHY" that names the column, and the row, counted
/// from 1 below the names.
Observations observations_of(const Matrix& table, std::vector<std::string> names,
                             const ObservationRules& rules, const std::string& source);

}  // namespace nsimplex::causal
