// Regresses columns by their kind, such as logits and counts, for the search of orders.

#include "causal/structure/mixed_costs.h"

#include <Eigen/Cholesky>
#include <unsupported/Eigen/SpecialFunctions>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "causal/structure/row_statistics.h"
#include "causal/tables/column_error.h"
#include "causal/tables/table_arguments.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

constexpr double kCoefficientRidge = 1e-3;
constexpr double kMostPredicted = 30;  // of a linear predictor, whose exponential is taken
constexpr int kNewtonSteps = 30;
constexpr int kShapeRounds = 4;
constexpr int64_t kMostLevels = 30;

[[noreturn]] void refuse(int64_t column, const std::string& expected, const std::string& got) {
  throw ColumnError(
      std::string("kinds: expected ").append(expected).append(" in column {}, got ").append(got),
      {column});
}

}  // namespace

MixedCosts::MixedCosts(TableView table, const CausalFitOptions& options)
    : kinds_(options.kinds), values_(table), levels_(options.kinds.size(), 0) {
  const int64_t rows = table.rows(), count = table.cols();
  require_one_per_column("kinds", kinds_.size(), count);
  std::vector<Vector> causes;
  first_ = {0};
  for (int64_t column = 0; column < count; ++column) {
    const ColumnKind kind = kinds_[static_cast<size_t>(column)];
    if (kind == ColumnKind::continuous) {
      causes.emplace_back(table.col(column));
    } else if (kind == ColumnKind::count) {
      for (const double x : table.col(column)) {
        if (x < 0 || x != std::floor(x)) refuse(column, "whole numbers from 0", std::to_string(x));
      }
      causes.emplace_back(table.col(column).array().log1p());
    } else {
      const std::set<double> different(table.col(column).begin(), table.col(column).end());
      const std::vector<double> levels(different.begin(), different.end());
      const bool binary = kind == ColumnKind::binary;
      if (binary ? levels.size() != 2 : std::ssize(levels) > kMostLevels) {
        refuse(column, binary ? "two values" : "at most 30 different values",
               std::to_string(levels.size()));
      }
      levels_[static_cast<size_t>(column)] = std::ssize(levels);
      for (int64_t row = 0; row < rows; ++row) {
        values_(row, column) = static_cast<double>(
            std::ranges::lower_bound(levels, table(row, column)) - levels.begin());
      }
      for (size_t level = 1; level < levels.size(); ++level) {
        causes.emplace_back(
            (values_.col(column).array() == static_cast<double>(level)).cast<double>());
      }
    }
    first_.push_back(std::ssize(causes));
  }
  causes_.resize(rows, std::ssize(causes));
  scale_.resize(std::ssize(causes));
  for (int64_t k = 0; k < scale_.size(); ++k) {
    const Vector& cause = causes[static_cast<size_t>(k)];
    causes_.col(k) = cause.array() - cause.mean();
    scale_[k] = std::sqrt(causes_.col(k).squaredNorm() / static_cast<double>(rows));
    causes_.col(k) /= scale_[k];
  }
  base_ = Columns::Ones(rows, 1);
  if (!options.groups.empty()) {
    const std::vector<int64_t> groups = numbered_groups(options.groups, rows);
    base_ = Columns::Zero(rows, *std::ranges::max_element(groups) + 1);
    for (int64_t row = 0; row < rows; ++row) base_(row, groups[static_cast<size_t>(row)]) = 1;
  }
  used_.resize(static_cast<size_t>(count));
  if (options.targets.empty()) return;
  targets_ = RowStatistics(table, options).covariances().targets;
  for (int64_t row = 0; row < rows; ++row) {
    for (const int64_t column : options.targets[static_cast<size_t>(row)]) {
      Vector& used = used_[static_cast<size_t>(column)];
      if (used.size() == 0) used = Vector::Ones(rows);
      used[row] = 0;
    }
  }
}

int64_t MixedCosts::equations(int64_t column) const {
  return std::max<int64_t>(levels_[static_cast<size_t>(column)] - 1, 1);
}

double MixedCosts::observations(int64_t column) const {
  const Vector& used = used_[static_cast<size_t>(column)];
  const double rows = used.size() == 0 ? static_cast<double>(values_.rows()) : used.sum();
  return rows - static_cast<double>(base_.cols()) + 1;
}

int64_t MixedCosts::most(int64_t column) const {
  const auto rows = static_cast<int64_t>(observations(column));
  return std::clamp<int64_t>(rows / (10 * equations(column)), 1, features() - 1);
}

double MixedCosts::price_of(int64_t cause, int64_t effect) const {
  constexpr double kFalseEdges = 0.5;
  const int64_t parameters = width(cause) * equations(effect);
  const auto [at, added] = tests_.try_emplace(parameters);
  if (added) {
    at->second =
        chi_squared_test(static_cast<double>(parameters), edge_level(features(), kFalseEdges));
  }
  const double bic = static_cast<double>(1 + parameters) * std::log(observations(effect));
  return std::max(bic, at->second);
}

bool MixedCosts::tells(int64_t cause, int64_t effect) const {
  constexpr auto kLinear = ColumnKind::continuous;
  return kinds_[static_cast<size_t>(cause)] != kLinear ||
         kinds_[static_cast<size_t>(effect)] != kLinear || tells_of(targets_, cause, effect);
}

Matrix MixedCosts::correlations() const {
  const Columns centred = values_.rowwise() - values_.colwise().mean();
  const Vector inverse = centred.colwise().norm().cwiseInverse();
  return inverse.asDiagonal() * (centred.transpose() * centred) * inverse.asDiagonal();
}

MixedCosts::Columns MixedCosts::information(const Fit& fit, const Columns& left,
                                            const Columns& right) const {
  const int64_t count = fit.residuals.cols();
  Columns result(left.cols() * count, right.cols() * count);
  size_t pair = 0;
  for (int64_t e = 0; e < count; ++e) {
    for (int64_t f = 0; f <= e; ++f, ++pair) {
      const Columns block = left.transpose() * (fit.weights[pair].asDiagonal() * right);
      for (int64_t a = 0; a < left.cols(); ++a) {
        for (int64_t b = 0; b < right.cols(); ++b) {
          result(a * count + e, b * count + f) = block(a, b);
          result(a * count + f, b * count + e) = block(a, b);
        }
      }
    }
  }
  return result;
}

void MixedCosts::evaluate(int64_t column, Fit& fit) const {
  const Vector& used = used_[static_cast<size_t>(column)];
  const int64_t rows = values_.rows(), count = fit.coefficients.cols();
  const Columns predicted =
      (fit.design * fit.coefficients).cwiseMax(-kMostPredicted).cwiseMin(kMostPredicted);
  fit.residuals.resize(rows, count);
  fit.weights.assign(static_cast<size_t>(count * (count + 1) / 2), Vector(rows));
  fit.deviance = 0;
  Vector chance(count);
  for (int64_t row = 0; row < rows; ++row) {
    const double use = used.size() == 0 ? 1 : used[row], value = values_(row, column);
    if (kinds_[static_cast<size_t>(column)] == ColumnKind::count) {
      const double mean = std::exp(predicted(row, 0)), shrunk = 1 / (1 + mean / fit.shape);
      fit.residuals(row, 0) = use * (value - mean) * shrunk;
      fit.weights[0][row] = use * mean * shrunk;
      fit.deviance -=
          2 * use *
          (value * predicted(row, 0) - (value + fit.shape) * std::log1p(mean / fit.shape));
      continue;
    }
    const double most = std::max(predicted.row(row).maxCoeff(), 0.0);
    chance = (predicted.row(row).array() - most).exp();
    const double all = std::exp(-most) + chance.sum();
    chance /= all;
    fit.deviance += 2 * use * (most + std::log(all));
    const auto level = static_cast<int64_t>(value);
    if (level > 0) fit.deviance -= 2 * use * predicted(row, level - 1);
    size_t pair = 0;
    for (int64_t e = 0; e < count; ++e) {
      fit.residuals(row, e) = use * ((level == e + 1 ? 1.0 : 0.0) - chance[e]);
      for (int64_t f = 0; f <= e; ++f, ++pair) {
        fit.weights[pair][row] = use * ((e == f ? chance[e] : 0.0) - chance[e] * chance[f]);
      }
    }
  }
}

std::map<double, double> MixedCosts::counts_of(int64_t column) const {
  const Vector& used = used_[static_cast<size_t>(column)];
  std::map<double, double> counts;
  for (int64_t row = 0; row < values_.rows(); ++row) {
    counts[values_(row, column)] += used.size() == 0 ? 1 : used[row];
  }
  return counts;
}

// The shape of a negative binomial count by Newton's method in its logarithm, and what it adds to
// the deviance beside evaluate().
void MixedCosts::estimate_shape(int64_t column, Fit& fit) const {
  constexpr double kLeast = -3, kMost = 10;  // of the logarithm; beyond it is a Poisson count
  const Vector& used = used_[static_cast<size_t>(column)];
  const std::map<double, double> counts = counts_of(column);
  const Vector mean = (fit.design * fit.coefficients)
                          .cwiseMax(-kMostPredicted)
                          .cwiseMin(kMostPredicted)
                          .array()
                          .exp();
  double log_shape = std::log(fit.shape);
  for (int step = 0; step < 8; ++step) {
    const double shape = std::exp(log_shape);
    double slope = 0, curve = 0;
    for (const auto& [value, rows] : counts) {
      if (value == 0) continue;
      slope += rows * (Eigen::numext::digamma(value + shape) - Eigen::numext::digamma(shape));
      curve += rows * (Eigen::numext::polygamma(1.0, value + shape) -
                       Eigen::numext::polygamma(1.0, shape));
    }
    for (int64_t row = 0; row < mean.size(); ++row) {
      const double use = used.size() == 0 ? 1 : used[row], all = shape + mean[row];
      const double part = (values_(row, column) + shape) / all;
      slope += use * (1 - std::log1p(mean[row] / shape) - part);
      curve += use * (1 / shape - 2 / all + part / all);
    }
    slope *= shape;
    curve = shape * shape * curve + slope;
    const double move = curve < 0 ? -slope / curve : (slope > 0 ? 1.0 : -1.0);
    const double next = std::clamp(log_shape + std::clamp(move, -1.5, 1.5), kLeast, kMost);
    const bool done = std::abs(next - log_shape) < 1e-4;
    log_shape = next;
    if (done) break;
  }
  fit.shape = std::exp(log_shape);
}

void MixedCosts::fit_gaussian(int64_t column, Fit& fit) const {
  const Vector& used = used_[static_cast<size_t>(column)];
  const Vector value = values_.col(column);
  fit.weights.assign(1, used.size() == 0 ? Vector::Ones(value.size()).eval() : used);
  fit.residuals.resize(value.size(), 1);
  Columns square = information(fit, fit.design, fit.design);
  square.diagonal().array() += 1e-9 * static_cast<double>(value.size());
  fit.coefficients =
      square.llt().solve(fit.design.transpose() * fit.weights[0].cwiseProduct(value));
  fit.residuals = fit.weights[0].cwiseProduct(value - fit.design * fit.coefficients);
  const double rows = fit.weights[0].sum(), whole = fit.weights[0].dot(value.cwiseAbs2());
  const double variance = std::max(fit.residuals.squaredNorm(), 1e-10 * whole) / rows;
  fit.deviance = rows * std::log(variance);
  fit.residuals /= variance;
  fit.weights[0] /= variance;
}

MixedCosts::Fit MixedCosts::fit(int64_t column, std::span<const int64_t> parents) const {
  Fit fit;
  int64_t columns = base_.cols();
  for (const int64_t parent : parents) columns += width(parent);
  fit.design.resize(values_.rows(), columns);
  fit.design.leftCols(base_.cols()) = base_;
  int64_t at = base_.cols();
  for (const int64_t parent : parents) {
    fit.design.middleCols(at, width(parent)) =
        causes_.middleCols(first_[static_cast<size_t>(parent)], width(parent));
    at += width(parent);
  }
  const ColumnKind kind = kinds_[static_cast<size_t>(column)];
  if (kind == ColumnKind::continuous) {
    fit_gaussian(column, fit);
    return fit;
  }
  const int64_t count = equations(column);
  fit.coefficients = Columns::Zero(columns, count);
  const bool is_count = kind == ColumnKind::count;
  if (is_count) {
    fit.shape = 1;
    fit.coefficients.topRows(base_.cols())
        .setConstant(std::log(std::max(values_.col(column).mean(), 1e-3)));
  }
  const auto penalised = [&](const Fit& each) {
    return each.deviance + kCoefficientRidge * each.coefficients.squaredNorm();
  };
  for (int round = 0; round < (is_count ? kShapeRounds : 1); ++round) {
    if (is_count && round > 0) estimate_shape(column, fit);
    evaluate(column, fit);
    for (int step = 0; step < kNewtonSteps; ++step) {
      Columns square = information(fit, fit.design, fit.design);
      square.diagonal().array() += kCoefficientRidge;
      Columns slope = (fit.design.transpose() * fit.residuals).transpose() -
                      kCoefficientRidge * fit.coefficients.transpose();
      const Vector move = square.llt().solve(slope.reshaped());
      const double before = penalised(fit);
      const Columns from = fit.coefficients;
      double length = 1;
      for (; length > 1e-4; length /= 2) {
        fit.coefficients = from + length * move.reshaped(count, columns).transpose();
        evaluate(column, fit);
        if (penalised(fit) <= before + 1e-9 * std::abs(before)) break;
      }
      if (before - penalised(fit) < 1e-4) break;
    }
  }
  if (is_count) {
    for (const auto& [value, rows] : counts_of(column)) {
      fit.deviance -=
          2 * rows *
          (std::lgamma(value + fit.shape) - std::lgamma(fit.shape) - value * std::log(fit.shape));
    }
  }
  return fit;
}

ParentSet MixedCosts::of(int64_t column, std::vector<int64_t> parents, Vector* without) const {
  const auto price = [&](std::span<const int64_t> set) {
    double sum = 0;
    for (const int64_t each : set) sum += price_of(each, column);
    if (std::ssize(set) > most(column)) sum += 25 * observations(column);
    return sum;
  };
  if (without != nullptr) {
    without->resize(std::ssize(parents));
    for (int64_t k = 0; k < without->size(); ++k) {
      std::vector<int64_t> fewer = parents;
      fewer.erase(fewer.begin() + k);
      (*without)[k] = fit(column, fewer).deviance + price(fewer);
    }
  }
  const double deviance = fit(column, parents).deviance, cost = deviance + price(parents);
  return {std::move(parents), std::exp(deviance / observations(column)), cost};
}

Vector MixedCosts::score_tests(int64_t column, const Fit& fit) const {
  const int64_t count = fit.residuals.cols();
  Columns square = information(fit, fit.design, fit.design);
  square.diagonal().array() += kCoefficientRidge;
  const Eigen::LLT<Columns> factor = square.llt();
  const Columns cross = information(fit, fit.design, causes_);
  const Columns solved = factor.solve(cross);
  const Columns slopes = causes_.transpose() * fit.residuals;  // [D, e]
  const double rows = observations(column);
  Vector result = Vector::Zero(features());
  for (int64_t cause = 0; cause < features(); ++cause) {
    if (cause == column) continue;
    const int64_t begin = first_[static_cast<size_t>(cause)], size = width(cause);
    const Columns own = causes_.middleCols(begin, size);
    Columns left =
        information(fit, own, own) - cross.middleCols(begin * count, size * count).transpose() *
                                         solved.middleCols(begin * count, size * count);
    left.diagonal().array() += kCoefficientRidge;
    const Vector slope = slopes.middleRows(begin, size).transpose().reshaped();
    const double test = slope.dot(left.ldlt().solve(slope));
    // Of a linear regression it is n R^2 of what is left.
    const bool linear = kinds_[static_cast<size_t>(column)] == ColumnKind::continuous;
    result[cause] = linear ? -rows * std::log(std::max(1 - test / rows, 1e-10)) : test;
  }
  return result;
}

std::vector<int64_t> MixedCosts::better(int64_t column, std::span<const int64_t> parents) const {
  const Vector tests = score_tests(column, fit(column, parents));
  std::vector<std::pair<double, int64_t>> gains;
  for (int64_t cause = 0; cause < features(); ++cause) {
    if (cause == column || std::ranges::count(parents, cause) > 0) continue;
    const double gain = tests[cause] - price_of(cause, column);
    if (gain > 0) gains.emplace_back(-gain, cause);
  }
  std::sort(gains.begin(), gains.end());
  std::vector<int64_t> result(gains.size());
  std::ranges::transform(gains, result.begin(), &std::pair<double, int64_t>::second);
  return result;
}

Vector MixedCosts::coefficients(int64_t column, std::span<const int64_t> parents) const {
  const Fit found = fit(column, parents);
  Vector result(std::ssize(parents));
  int64_t at = base_.cols();
  for (int64_t k = 0; k < result.size(); ++k) {
    const int64_t parent = parents[static_cast<size_t>(k)], size = width(parent);
    const Columns own =
        scale_.segment(first_[static_cast<size_t>(parent)], size).cwiseInverse().asDiagonal() *
        found.coefficients.middleRows(at, size);
    result[k] = own.size() == 1 ? own(0, 0) : own.norm();
    at += size;
  }
  return result;
}

Matrix MixedCosts::alone() const {
  Matrix result(features(), features());
  for (int64_t column = 0; column < features(); ++column) {
    result.col(column) = score_tests(column, fit(column, {})) / observations(column);
  }
  return result;
}

}  // namespace nsimplex::causal
