// Computes covariances of tables with groups, interventions and missing values.

#include "causal/structure/row_statistics.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "causal/tables/column_error.h"
#include "causal/tables/table_arguments.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

[[noreturn]] void fail(const std::string& option, const std::string& why) {
  throw InputError(std::string(option).append(": expected ").append(why));
}

[[noreturn]] void fail_without_rows(int64_t column, int64_t rows) {
  throw ColumnError(
      std::string("targets: expected rows without an intervention on column {} in which it varies, "
                  "got ")
          .append(std::to_string(rows))
          .append(" rows"),
      {column});
}

int64_t count_of(std::span<const int64_t> groups) {
  return groups.empty() ? 1 : *std::max_element(groups.begin(), groups.end()) + 1;
}

}  // namespace

std::vector<int64_t> numbered_groups(std::span<const int64_t> groups, int64_t rows) {
  require_one_per_row("groups", groups.size(), rows);
  std::map<int64_t, int64_t> numbers;
  std::vector<int64_t> result;
  for (const int64_t group : groups) {
    result.push_back(numbers.emplace(group, std::ssize(numbers)).first->second);
  }
  if (std::ssize(numbers) > rows - 2) {
    fail("groups", std::string("at least two rows more than groups, got ")
                       .append(std::to_string(numbers.size()))
                       .append(" groups of ")
                       .append(std::to_string(rows))
                       .append(" rows"));
  }
  return result;
}

Matrix without_groups(TableView table, std::span<const int64_t> groups) {
  Matrix means = Matrix::Zero(count_of(groups), table.cols());
  Vector rows = Vector::Zero(means.rows());
  for (int64_t row = 0; row < table.rows(); ++row) {
    const int64_t group = groups[static_cast<size_t>(row)];
    rows[group] += 1;
    // The running mean, which stays in the range of the numbers.
    means.row(group) += (table.row(row) - means.row(group)) / rows[group];
  }
  Matrix result = table;
  for (int64_t row = 0; row < table.rows(); ++row) {
    result.row(row) -= means.row(groups[static_cast<size_t>(row)]);
  }
  return result;
}

namespace {

// The rows of a table whose missing values (NaN) have been filled with what is expected there, and
// what is uncertain about them.
class Expectation {
 public:
  explicit Expectation(const Matrix& table) : values_(table) {
    const int64_t features = table.cols();
    std::map<std::vector<int64_t>, std::vector<int64_t>> patterns;
    for (int64_t row = 0; row < table.rows(); ++row) {
      std::vector<int64_t> gaps;
      for (int64_t column = 0; column < features; ++column) {
        if (std::isnan(table(row, column))) gaps.push_back(column);
      }
      if (std::ssize(gaps) < features) {
        patterns[gaps].push_back(row);
        rows_.push_back(row);
      }
    }
    patterns_.assign(patterns.begin(), patterns.end());
    values_ = values_.array().isNaN().select(0.0, values_);
    filled_ = values_;
  }

  // Mean and covariance of the filled rows; the covariance before determines what is expected.
  void step(Vector& mean, Matrix& covariance) {
    const int64_t features = values_.cols();
    Matrix ridged = covariance;
    ridged.diagonal().array() += kGapRidge;
    const Matrix precision = ridged.llt().solve(Matrix::Identity(features, features));
    Matrix uncertain = Matrix::Zero(features, features);
    for (const auto& [gaps, rows] : patterns_) {
      if (gaps.empty()) continue;
      const Matrix between = precision(gaps, gaps);
      const Matrix left = between.llt().solve(Matrix::Identity(between.rows(), between.cols()));
      Matrix from = -left * precision(gaps, Eigen::all);  // of all columns, the gaps left out
      for (const int64_t gap : gaps) from.col(gap).setZero();
      uncertain(gaps, gaps) += static_cast<double>(rows.size()) * left;
      for (const int64_t row : rows) {
        const Vector apart = values_.row(row).transpose() - mean;
        const Vector expected = from * apart;
        for (size_t k = 0; k < gaps.size(); ++k) {
          filled_(row, gaps[k]) = mean[gaps[k]] + expected[static_cast<int64_t>(k)];
        }
      }
    }
    const Matrix chosen = filled_(rows_, Eigen::all);
    mean = chosen.colwise().mean();
    const Matrix centred = chosen.rowwise() - mean.transpose();
    covariance = (centred.transpose() * centred + uncertain) / static_cast<double>(rows_.size());
  }

 private:
  static constexpr double kGapRidge = 1e-6;

  Matrix values_;  // zeros in the gaps, which no coefficient reaches
  Matrix filled_;
  std::vector<int64_t> rows_;
  std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> patterns_;
};

Vector deviations_of(const Matrix& covariance) {
  return covariance.diagonal().cwiseMax(1e-300).cwiseSqrt();
}

}  // namespace

Matrix likelihood_covariance(const Matrix& table) {
  constexpr int kSteps = 200;
  constexpr double kStill = 1e-4;
  Matrix scaled = table;
  Vector scale = Vector::Ones(table.cols());
  for (int64_t column = 0; column < table.cols(); ++column) {
    const auto there = !table.col(column).array().isNaN();
    const auto count = static_cast<double>(std::max<int64_t>(there.count(), 1));
    const double mean = there.select(table.col(column).array(), 0.0).sum() / count;
    scaled.col(column).array() -= mean;
    const double squares = there.select(scaled.col(column).array().square(), 0.0).sum();
    if (squares > 0) scale[column] = std::sqrt(squares / count);
    scaled.col(column) /= scale[column];
  }
  Expectation rows(scaled);
  Vector mean = Vector::Zero(table.cols());
  Matrix covariance = Matrix::Identity(table.cols(), table.cols());
  for (int step = 0; step < kSteps; ++step) {
    const Matrix before = covariance;
    rows.step(mean, covariance);
    const Vector own = deviations_of(covariance).cwiseInverse(),
                 last = deviations_of(before).cwiseInverse();
    const double change = (own.asDiagonal() * covariance * own.asDiagonal() -
                           Matrix(last.asDiagonal() * before * last.asDiagonal()))
                              .cwiseAbs()
                              .maxCoeff();
    if (change < kStill) break;
  }
  return scale.asDiagonal() * covariance * scale.asDiagonal();
}

RowStatistics::RowStatistics(TableView table, const CausalFitOptions& options)
    : soft_(options.soft) {
  if (table.hasNaN()) {
    table_ = table;
    treat_missing(options);
    table_.resize(0, 0);
    return;
  }
  if (options.groups.empty() && options.targets.empty()) {
    covariances_.all = covariance_of(table);
    return;
  }
  table_ = table.rowwise() - table.colwise().mean();
  groups_ = options.groups.empty() ? std::vector<int64_t>(static_cast<size_t>(table.rows()), 0)
                                   : numbered_groups(options.groups, table.rows());
  if (!options.targets.empty()) read_targets(options);
  std::vector<int64_t> rows(static_cast<size_t>(table.rows()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  const Moments all = moments_of(rows);
  const Scatter whole = scatter_of(all);
  covariances_.all = {whole.products / static_cast<double>(whole.rows), whole.worth()};
  for (const std::vector<int64_t>& own : rows_of_) {
    const Moments with = moments_of(own);
    plain_.push_back(
        scatter_of({all.products - with.products, all.sums - with.sums, all.rows - with.rows}));
    intervened_.push_back(scatter_of(with));
  }
  add_own();
  table_.resize(0, 0);
}

void RowStatistics::read_targets(const CausalFitOptions& options) {
  const int64_t features = table_.cols(), rows = table_.rows();
  require_targets(options.targets, rows, features);
  std::vector<std::vector<int64_t>> rows_of(static_cast<size_t>(features));
  std::set<std::vector<int64_t>> sets;
  std::vector<int64_t> without;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> set = options.targets[static_cast<size_t>(row)];
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    if (set.empty()) without.push_back(row);
    for (const int64_t column : set) rows_of[static_cast<size_t>(column)].push_back(row);
    if (!set.empty()) sets.insert(std::move(set));
  }
  covariances_.targets.assign(sets.begin(), sets.end());
  covariances_.place.assign(static_cast<size_t>(features), -1);
  for (int64_t column = 0; column < features; ++column) {
    std::vector<int64_t>& own = rows_of[static_cast<size_t>(column)];
    if (own.empty()) continue;
    covariances_.place[static_cast<size_t>(column)] = std::ssize(changed_);
    changed_.push_back(column);
    rows_of_.push_back(std::move(own));
  }
  constexpr int64_t kMostNumbers = int64_t{1} << 28;
  if (std::ssize(changed_) * features > kMostNumbers / features) {
    fail("targets", std::string("at most ")
                        .append(std::to_string(kMostNumbers / features / features))
                        .append(" of the columns, each of which has a covariance, got ")
                        .append(std::to_string(changed_.size())));
  }
  if (std::ssize(without) < 2 * features || table_.hasNaN()) return;
  const Scatter scatter = scatter_of(moments_of(without));
  const bool varied = (scatter.products.diagonal().array() > 0).all();
  if (!varied) return;
  covariances_.observed = {scatter.products / static_cast<double>(scatter.rows), scatter.worth()};
}

RowStatistics::Moments RowStatistics::moments_of(std::span<const int64_t> rows) const {
  const int64_t features = table_.cols();
  Moments result{Matrix::Zero(features, features), Matrix::Zero(count_of(groups_), features),
                 Vector::Zero(count_of(groups_))};
  Matrix chosen(std::ssize(rows), features);
  for (int64_t k = 0; k < std::ssize(rows); ++k) {
    const int64_t row = rows[static_cast<size_t>(k)], group = groups_[static_cast<size_t>(row)];
    chosen.row(k) = table_.row(row);
    result.sums.row(group) += table_.row(row);
    result.rows[group] += 1;
  }
  result.products.selfadjointView<Eigen::Lower>().rankUpdate(chosen.transpose());
  result.products.triangularView<Eigen::StrictlyUpper>() = result.products.transpose();
  return result;
}

RowStatistics::Scatter RowStatistics::scatter_of(const Moments& moments) {
  Scatter result{moments.products, static_cast<int64_t>(moments.rows.sum()), 0};
  for (int64_t group = 0; group < moments.rows.size(); ++group) {
    if (moments.rows[group] == 0) continue;
    ++result.groups;
    const Vector sum = moments.sums.row(group);
    result.products.noalias() -= sum * (sum.transpose() / moments.rows[group]);
  }
  // What is left of a column that is constant in its groups is rounding.
  constexpr double kRounding = 1e-12;
  for (int64_t column = 0; column < result.products.rows(); ++column) {
    if (result.products(column, column) > kRounding * moments.products(column, column)) continue;
    result.products.row(column).setZero();
    result.products.col(column).setZero();
  }
  return result;
}

void RowStatistics::add_own() {
  for (size_t k = 0; k < changed_.size(); ++k) {
    const Scatter& plain = plain_[k];
    const int64_t column = changed_[k];
    if (plain.worth() < 3 || !(plain.products(column, column) > 0)) {
      fail_without_rows(column, plain.rows);
    }
    covariances_.own.push_back({plain.products / static_cast<double>(plain.rows), plain.worth()});
  }
  if (soft_) weigh(Matrix());
}

void RowStatistics::treat_missing(const CausalFitOptions& options) {
  if (!options.groups.empty() || options.soft) {
    fail(options.soft ? "soft" : "groups", "a table without missing values");
  }
  const Matrix there = (!table_.array().isNaN()).cast<double>();
  const int64_t features = table_.cols();
  const auto worth = [&](const Matrix& mask, int64_t column) {
    const Vector pairs = mask.transpose() * mask.col(column);
    const double mean = (pairs.sum() - pairs[column]) / static_cast<double>(features - 1);
    return std::max<int64_t>(std::llround(mean), 2);
  };
  covariances_.all = {likelihood_covariance(table_), table_.rows()};
  for (int64_t column = 0; column < features; ++column) {
    covariances_.worth.push_back(worth(there, column));
  }
  if (options.targets.empty()) return;
  read_targets(options);
  for (size_t k = 0; k < changed_.size(); ++k) {
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < table_.rows(); ++row) {
      if (!std::ranges::binary_search(rows_of_[k], row)) rows.push_back(row);
    }
    if (rows.size() < 3) fail_without_rows(changed_[k], std::ssize(rows));
    const Matrix own = table_(rows, Eigen::all), mask = there(rows, Eigen::all);
    covariances_.own.push_back({likelihood_covariance(own), std::ssize(rows)});
    covariances_.worth[static_cast<size_t>(changed_[k])] = worth(mask, changed_[k]);
  }
}

void RowStatistics::weigh(const Matrix& weights) {
  constexpr double kMost = 1e4;  // of the ratio of two variances
  for (size_t k = 0; k < changed_.size(); ++k) {
    const Scatter &plain = plain_[k], &with = intervened_[k];
    double ratio = 1;
    if (weights.size() > 0 && with.worth() > 1) {
      Vector left = -weights.col(changed_[k]);
      left[changed_[k]] = 1;
      const auto variance = [&](const Scatter& each) {
        return left.dot(each.products * left) / static_cast<double>(each.worth() - 1);
      };
      const double here = variance(plain), there = variance(with);
      ratio = there > here / kMost ? std::max(here / there, 1 / kMost) : kMost;
    }
    const auto rows = static_cast<double>(plain.rows + with.rows);
    covariances_.own[k] = {(plain.products + ratio * with.products) / rows,
                           plain.rows + with.rows - plain.groups - with.groups + 1};
  }
}

}  // namespace nsimplex::causal
