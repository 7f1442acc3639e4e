// Checks that a table is usable for learning a causal graph, and leaves out what is not.

#include "causal/tables/usable_table.h"

#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "causal/tables/derived_columns.h"
#include "io/input_file.h"
#include "support/error.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

class Check {
 public:
  Check(const Matrix& table, std::vector<std::string> names, const UsableRules& rules,
        const std::string& source)
      : table_(rules.drop && table.rows() > 0 ? without_empty_columns(table) : table),
        rules_(rules),
        source_(source) {
    result_.names = std::move(names);
  }

  UsableTable run() {
    require_two("columns", table_.cols());
    require_different_names();
    treat_missing();
    require_two("rows without missing values", result_.values.rows());
    select_columns();
    require_two("columns that vary and differ", result_.values.cols());
    return std::move(result_);
  }

 private:
  // Puts zeros into columns without a single value, because constant columns are dropped.
  Matrix without_empty_columns(const Matrix& table) {
    Matrix filled = table;
    for (Eigen::Index column = 0; column < table.cols(); ++column) {
      if (!table.col(column).array().isNaN().all()) continue;
      filled.col(column).setZero();
      empty_.insert(column);
    }
    return filled;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw InputError(std::string("cannot use ").append(source_).append(": ").append(why));
  }

  void require_two(const char* what, Eigen::Index count) const {
    if (count >= 2) return;
    fail(std::string("expected at least two ")
             .append(what)
             .append(", got ")
             .append(std::to_string(count)));
  }

  std::string name(Eigen::Index column) const {
    if (result_.names.empty()) return std::string("x").append(std::to_string(column));
    return quoted_name(result_.names[static_cast<size_t>(column)]);
  }

  void require_different_names() const {
    std::map<std::string_view, size_t> seen;
    for (size_t column = 0; column < result_.names.size(); ++column) {
      const auto [first, added] = seen.emplace(result_.names[column], column);
      if (added) continue;
      fail(std::string("expected columns of different names, got ")
               .append(quoted_name(result_.names[column]))
               .append(" for columns ")
               .append(std::to_string(first->second))
               .append(" and ")
               .append(std::to_string(column)));
    }
  }

  void treat_missing() {
    std::vector<Eigen::Index> whole;
    for (Eigen::Index row = 0; row < table_.rows(); ++row) {
      if (!table_.row(row).hasNaN()) whole.push_back(row);
    }
    result_.rows.resize(static_cast<size_t>(table_.rows()));
    std::iota(result_.rows.begin(), result_.rows.end(), int64_t{0});
    if (static_cast<Eigen::Index>(whole.size()) == table_.rows()) {
      result_.values = table_;
      return;
    }
    switch (rules_.missing) {
      case MissingValues::refuse:
        return refuse_missing();
      case MissingValues::rows:
        result_.dropped_rows = table_.rows() - static_cast<Eigen::Index>(whole.size());
        result_.values = table_(whole, Eigen::all);
        result_.rows = std::move(whole);
        return;
      case MissingValues::means:
        return fill();
      case MissingValues::likelihood:
        result_.values = table_;
        return;
    }
  }

  void refuse_missing() const {
    const int64_t missing = table_.array().isNaN().count();
    for (Eigen::Index row = 0; row < table_.rows(); ++row) {
      for (Eigen::Index column = 0; column < table_.cols(); ++column) {
        if (!std::isnan(table_(row, column))) continue;
        fail(std::to_string(missing)
                 .append(missing == 1 ? " value is" : " values are")
                 .append(" missing, the first in row ")
                 .append(std::to_string(row + 1))
                 .append(", column ")
                 .append(name(column)));
      }
    }
  }

  void fill() {
    result_.values = table_;
    for (Eigen::Index column = 0; column < table_.cols(); ++column) {
      const auto there = table_.col(column).array().isNaN().select(0.0, table_.col(column).array());
      const int64_t missing = table_.col(column).array().isNaN().count();
      if (missing == table_.rows()) {
        fail(std::string("column ").append(name(column)).append(" has no values"));
      }
      const double mean = there.sum() / static_cast<double>(table_.rows() - missing);
      for (double& value : result_.values.col(column)) value = std::isnan(value) ? mean : value;
      result_.filled += missing;
    }
  }

  void select_columns() {
    std::unordered_multimap<uint64_t, Eigen::Index>
        seen;  // kept columns by the hash of their values
    for (Eigen::Index column = 0; column < result_.values.cols(); ++column) {
      const auto values = result_.values.col(column);
      std::string fault;
      if (is_constant(values)) {
        fault = empty_.contains(column) ? "no values" : "constant";
      } else {
        uint64_t hash = 0;
        for (const double value : values) hash = random_bits(hash, std::bit_cast<uint64_t>(value));
        const auto [begin, end] = seen.equal_range(hash);
        for (auto other = begin; other != end; ++other) {
          if (result_.values.col(other->second) == values) {
            fault = std::string("equals ").append(name(other->second));
          }
        }
        if (fault.empty()) seen.emplace(hash, column);
      }
      if (fault.empty()) {
        result_.columns.push_back(column);
      } else if (rules_.drop) {
        result_.dropped.push_back(name(column).append(": ").append(fault));
      } else {
        fail(std::string("column ")
                 .append(name(column))
                 .append(fault == "constant" ? " is constant" : std::string(" ").append(fault)));
      }
    }
    if (rules_.drop) leave_out_derived();
    if (result_.dropped.empty()) return;
    const std::vector<int64_t> kept = std::move(result_.columns);
    result_.columns.resize(static_cast<size_t>(result_.values.cols()));
    std::iota(result_.columns.begin(), result_.columns.end(), int64_t{0});
    keep_columns(result_, kept);
  }

  // Of the columns that are kept so far, by their places in the table.
  void leave_out_derived() {
    const Matrix kept = result_.values(Eigen::all, result_.columns);
    std::vector<std::string> names;
    names.reserve(result_.columns.size());
    for (const int64_t column : result_.columns) names.push_back(name(column));
    std::set<int64_t> left_out;
    for (const DerivedColumn& each : derived_columns({kept.data(), kept.rows(), kept.cols()})) {
      const std::string relation = relation_text(each, names);
      const std::string& own = names[static_cast<size_t>(each.column)];
      result_.dropped.push_back(std::string(own).append(":").append(relation, own.size()));
      left_out.insert(result_.columns[static_cast<size_t>(each.column)]);
    }
    std::erase_if(result_.columns, [&](int64_t column) { return left_out.contains(column); });
  }

  std::set<Eigen::Index> empty_;  // columns that had no values before without_empty_columns()
  const Matrix table_;
  const UsableRules& rules_;
  const std::string& source_;
  UsableTable result_;
};

}  // namespace

void keep_columns(UsableTable& table, const std::vector<int64_t>& places) {
  table.values = Matrix(table.values(Eigen::all, places));
  std::vector<std::string> names;
  std::vector<int64_t> columns;
  for (const int64_t place : places) {
    if (!table.names.empty()) names.push_back(table.names[static_cast<size_t>(place)]);
    columns.push_back(table.columns[static_cast<size_t>(place)]);
  }
  table.names = std::move(names);
  table.columns = std::move(columns);
}

std::vector<std::string> column_names(int64_t count) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(count));
  for (int64_t column = 0; column < count; ++column) {
    names.push_back(std::string("x").append(std::to_string(column)));
  }
  return names;
}

bool is_constant(const Eigen::Ref<const Eigen::VectorXd, 0, Eigen::InnerStride<>>& values) {
  constexpr double kRounding = 1e-12;
  const double largest = values.cwiseAbs().maxCoeff();
  if (largest == 0) return true;
  const Eigen::VectorXd scaled = values / largest;
  const double deviation = std::sqrt((scaled.array() - scaled.mean()).square().mean());
  return deviation <= kRounding;
}

UsableTable usable_table(const Matrix& table, std::vector<std::string> names,
                         const UsableRules& rules, const std::string& source) {
  return Check(table, std::move(names), rules, source).run();
}

UsableTable usable_table(const io::Table& table, const UsableRules& rules,
                         const std::string& source) {
  return usable_table(TableView(table.values.data(), table.rows, table.width), table.columns, rules,
                      source);
}

}  // namespace nsimplex::causal
