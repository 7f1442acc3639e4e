// Finds columns that other columns of a table determine.

#include "causal/tables/derived_columns.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "support/number_text.h"

namespace nsimplex::causal {
namespace {

constexpr int64_t kMostSearched = 1000;  // columns
constexpr double kMostLeft = 1e-5;       // share of a column's variance, as of rounded numbers
constexpr double kLeastPart = 1e-3;      // a deviation's part of a member of a relation
constexpr size_t kShownParts = 6;        // of a relation in a message

using Square = Eigen::MatrixXd;

// Columns of mean 0 and deviation 1, with 0 in gaps; constant columns are 0.
struct Scaled {
  Square values;
  Vector mean, deviation;
};

Scaled scaled_columns(TableView table) {
  Scaled found{table, Vector(table.cols()), Vector(table.cols())};
  for (Eigen::Index column = 0; column < table.cols(); ++column) {
    auto own = found.values.col(column).array();
    const auto there = !table.col(column).array().isNaN();
    const auto count = static_cast<double>(std::max<Eigen::Index>(there.count(), 1));
    const double largest = there.select(table.col(column).array().abs(), 0.0).maxCoeff();
    const double unit = largest > 0 ? largest : 1;
    own = there.select(own / unit, 0.0);
    const double mean = own.sum() / count;
    own = there.select(own - mean, 0.0);
    const double deviation = std::sqrt(own.square().sum() / static_cast<double>(table.rows()));
    found.mean[column] = mean * unit;
    found.deviation[column] = deviation * unit;
    own *= deviation > 1e-12 ? 1 / deviation : 0.0;
  }
  return found;
}

// Independent columns and the Cholesky factor of their correlations, which grows by a row for each.
class Basis {
 public:
  explicit Basis(const Square& correlations)
      : correlations_(correlations),
        factor_(Square::Zero(correlations.rows(), correlations.rows())) {}

  // Whether the columns determine another one, which else becomes one of them.
  bool determines(int64_t column) {
    const auto count = static_cast<Eigen::Index>(columns_.size());
    Vector row = correlations_.col(column)(columns_);
    factor_.topLeftCorner(count, count).triangularView<Eigen::Lower>().solveInPlace(row);
    const double left = 1 - row.squaredNorm();
    if (left <= kMostLeft) return true;
    factor_.row(count).head(count) = row.transpose();
    factor_(count, count) = std::sqrt(left);
    columns_.push_back(column);
    return false;
  }

 private:
  const Square& correlations_;
  Square factor_;
  std::vector<int64_t> columns_;
};

// The regression of one column on others that are independent: its slopes and what is left.
std::pair<Vector, double> regression(const Square& correlations, int64_t column,
                                     const std::vector<int64_t>& others) {
  const Vector shared = correlations.col(column)(others);
  const Vector slopes = correlations(others, others).ldlt().solve(shared);
  return {slopes, std::max(1 - slopes.dot(shared), 0.0)};
}

// Columns of a relation of `column` with some of the independent columns before it.
std::optional<std::vector<int64_t>> members_of(const Square& correlations, int64_t column,
                                               const std::vector<int64_t>& before) {
  if (before.empty()) return {};
  const auto [slopes, left] = regression(correlations, column, before);
  if (left > kMostLeft) return {};
  // Columns that hardly count are left out as long as the others say as much.
  std::vector<int64_t> members;
  const double least = std::max(kLeastPart, 3 * std::sqrt(left));
  for (size_t k = 0; k < before.size(); ++k) {
    if (std::abs(slopes[static_cast<Eigen::Index>(k)]) > least) members.push_back(before[k]);
  }
  if (members.empty()) return {};
  const double with_few = regression(correlations, column, members).second;
  if (with_few > kMostLeft) members = before;
  members.push_back(column);
  return members;
}

// Of the members of a relation the one that correlates most with the others, the last of several.
int64_t sum_among(const Square& correlations, const std::vector<int64_t>& members) {
  constexpr double kSame = 1e-6;
  int64_t chosen = -1;
  double most = -1;
  for (const int64_t column : members) {
    const double own = correlations.col(column)(members).cwiseAbs().sum();
    if (own < most - kSame) continue;
    most = std::max(most, own);
    chosen = column;
  }
  return chosen;
}

DerivedColumn described(const Scaled& scaled, const Square& correlations, int64_t column,
                        std::vector<int64_t> from) {
  const Vector slopes = regression(correlations, column, from).first;
  DerivedColumn found{column, std::move(from), {}, scaled.mean[column]};
  for (size_t k = 0; k < found.from.size(); ++k) {
    const int64_t cause = found.from[k];
    const double weight =
        slopes[static_cast<Eigen::Index>(k)] * scaled.deviation[column] / scaled.deviation[cause];
    found.weights.push_back(weight);
    found.constant -= weight * scaled.mean[cause];
  }
  return found;
}

}  // namespace

std::vector<DerivedColumn> derived_columns(TableView table) {
  const int64_t columns = table.cols();
  if (columns > kMostSearched || table.rows() < 2 * columns) return {};
  const Scaled scaled = scaled_columns(table);
  const Square correlations =
      scaled.values.transpose() * scaled.values / static_cast<double>(table.rows());
  std::vector<DerivedColumn> found;
  std::vector<int64_t> kept;
  Basis basis(correlations);
  for (int64_t column = 0; column < columns; ++column) {
    if (scaled.deviation[column] <= 0) continue;
    // Columns that change places with those kept span the same.
    const auto members = basis.determines(column) ? members_of(correlations, column, kept)
                                                  : std::optional<std::vector<int64_t>>();
    if (!members) {
      kept.push_back(column);
      continue;
    }
    const int64_t chosen = sum_among(correlations, *members);
    std::vector<int64_t> from = *members;
    std::erase(from, chosen);
    std::ranges::sort(from);
    found.push_back(described(scaled, correlations, chosen, from));
    if (chosen == column) continue;
    std::erase(kept, chosen);
    kept.push_back(column);
    std::ranges::sort(kept);
  }
  return found;
}

std::string relation_text(const DerivedColumn& found, const std::vector<std::string>& names) {
  std::string text = names[static_cast<size_t>(found.column)];
  text.append(" =");
  bool first = true;
  const auto add = [&](double weight, const std::string& what) {
    const char* sign = weight < 0 ? (first ? " -" : " - ") : (first ? " " : " + ");
    text.append(sign).append(what);
    first = false;
  };
  double largest = 0;
  for (const double weight : found.weights) largest = std::max(largest, std::abs(weight));
  const bool constant = std::abs(found.constant) > 1e-6 * largest;
  const bool leads = constant && found.constant > 0 && found.weights.front() < 0;
  const std::string offset = number_text("%.4g", std::abs(found.constant));
  if (leads) add(found.constant, offset);
  const size_t shown = std::min(found.from.size(), kShownParts);
  for (size_t k = 0; k < shown; ++k) {
    const std::string size = number_text("%.4g", std::abs(found.weights[k]));
    const std::string& name = names[static_cast<size_t>(found.from[k])];
    add(found.weights[k], size == "1" ? name : size + " " + name);
  }
  if (found.from.size() > shown) {
    text.append(" + ").append(std::to_string(found.from.size() - shown)).append(" more columns");
  }
  if (constant && !leads) add(found.constant, offset);
  return text;
}

}  // namespace nsimplex::causal
