// Minimises the distance of tokens from a common row by linear programmes.
//
// One linear programme of residual.h: u_j, t_ij, a, b with
//     min w_a a + w_b b,   t_ij >= |x_ij - u_j|,   sum_i t_ij <= a,   sum_j t_ij <= b,
// by a primal-dual interior point method with Mehrotra's predictor and corrector. Its dual has a
// multiplier p_j per column and q_i per row, sum p = w_a, sum q = w_b. For any of them
//     sum_j min_v sum_i (p_j + q_i) |x_ij - v|
// is a lower bound, which weighted medians compute exactly.

#include "analysis/residual.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "support/median.h"

namespace nsimplex::analysis {
namespace {

constexpr int kMostProgrammes = 100;
constexpr double kNearSlopes = 1e-7;  // slopes that differ by less count as equal

// The result of one programme in the plane: slope a + b >= height, and a point of the set.
struct Line {
  double slope, height;
  ResidualNorms point;
};

struct Corner {
  double a, b;
  size_t after;  // lies between line after - 1 and line after

  double value() const { return std::sqrt(std::max(a, 0.0) * std::max(b, 0.0)); }
};

double crossing(const Line& flat, const Line& steep) {
  return (steep.height - flat.height) / (steep.slope - flat.slope);
}

// The corners of the region above all lines, with ascending slopes, and between the rays b >= a / n
// and b <= d a, which contain all (a, b).
std::vector<Corner> corners_of(const std::vector<Line>& lines, double n, double d) {
  std::vector<size_t> hull;  // lines that are needed
  for (size_t k = 0; k < lines.size(); ++k) {
    while (hull.size() > 1 && crossing(lines[hull.back()], lines[k]) >=
                                  crossing(lines[hull[hull.size() - 2]], lines[hull.back()])) {
      hull.pop_back();
    }
    hull.push_back(k);
  }
  const auto on = [&](size_t line, double a, size_t after) {
    return Corner{a, lines[line].height - lines[line].slope * a, after};
  };
  const Line &first = lines[hull.front()], &last = lines[hull.back()];
  std::vector<Corner> corners{on(hull.front(), first.height / (first.slope + 1 / n), hull.front())};
  for (size_t i = 1; i < hull.size(); ++i) {
    corners.push_back(on(hull[i - 1], crossing(lines[hull[i - 1]], lines[hull[i]]), hull[i]));
  }
  corners.push_back(on(hull.back(), last.height / (last.slope + d), hull.back() + 1));
  return corners;
}

// A slope that cuts the corner off: that of the points on both sides of it, which finds an edge of
// the set at once; NaN if no slope lies between.
double slope_at(const std::vector<Line>& lines, size_t after) {
  constexpr double kBeyond = 16;
  if (after == 0) return lines.front().slope / kBeyond;
  if (after == lines.size()) return lines.back().slope * kBeyond;
  const Line &flat = lines[after - 1], &steep = lines[after];
  const double low = flat.slope * (1 + kNearSlopes), high = steep.slope / (1 + kNearSlopes);
  if (low >= high) return std::numeric_limits<double>::quiet_NaN();
  const double between =
      (steep.point.rows - flat.point.rows) / (flat.point.columns - steep.point.columns);
  return low < between && between < high ? between : std::sqrt(low * high);
}

}  // namespace

double ResidualNorms::composite() const { return std::sqrt(columns) * std::sqrt(rows); }

ResidualNorms residual_norms(const Eigen::Ref<const TokenMatrix>& tokens,
                             const Eigen::Ref<const Eigen::VectorXd>& offset) {
  if (tokens.size() == 0) return {};
  const auto distances = (tokens.rowwise() - offset.transpose()).cwiseAbs();
  return {distances.colwise().sum().maxCoeff(), distances.rowwise().sum().maxCoeff()};
}

ResidualMinimum minimal_residual(const Eigen::Ref<const TokenMatrix>& tokens, double tolerance) {
  if (!tokens.allFinite()) throw std::invalid_argument("expected finite tokens");
  Eigen::VectorXd centre = Eigen::VectorXd::Zero(tokens.cols());
  for (Eigen::Index j = 0; j < tokens.cols() && tokens.rows() > 0; ++j) {
    const auto column = tokens.col(j);
    centre[j] = median({column.begin(), column.end()});
  }
  ResidualMinimum best{centre, residual_norms(tokens, centre).composite()};
  TokenMatrix own = tokens.rowwise() - centre.transpose();
  const double size = own.size() == 0 ? 0 : own.cwiseAbs().maxCoeff();
  if (size == 0) return best;
  own /= size;

  const double n = static_cast<double>(own.rows()), d = static_cast<double>(own.cols());
  std::vector<Line> lines;  // by ascending slope
  const auto solve = [&](double slope) {
    // slope = lambda^2; weights lambda and 1 / lambda.
    const double lambda = std::sqrt(slope);
    const WeightedResidual found = weighted_residual(own, lambda, 1 / lambda);
    const auto place = std::ranges::upper_bound(lines, slope, {}, &Line::slope);
    lines.insert(place, {slope, found.lower * lambda, found.norms});
    ++best.programmes;
    const Eigen::VectorXd offset = centre + size * found.offset;
    if (const double norm = residual_norms(tokens, offset).composite(); norm < best.norm) {
      best.norm = norm;
      best.offset = offset;
    }
  };
  // At the minimum lambda^2 = b / a, which is in [1 / n, d].
  for (const double slope : {1 / n, 1.0, d}) {
    if (lines.empty() || slope > lines.back().slope) solve(slope);
  }
  while (true) {
    const auto corners = corners_of(lines, n, d);
    const Corner lowest = *std::ranges::min_element(corners, {}, &Corner::value);
    best.lower = std::max(best.lower, std::min(best.norm, size * lowest.value()));
    if (best.lower >= (1 - tolerance) * best.norm || best.programmes >= kMostProgrammes) break;
    const double slope = slope_at(lines, lowest.after);
    if (!(slope > 0)) break;
    solve(slope);
  }
  return best;
}

namespace {

using Eigen::ArrayXd;
using Eigen::ArrayXXd;
using Eigen::VectorXd;

constexpr int kIterations = 100;
constexpr double kGap = 1e-10;        // relative gap of the value at which the iteration stops
constexpr double kToBoundary = 0.99;  // share of the longest feasible step
constexpr double kShortStep = 1e-8;   // shorter steps gain nothing any more

// min_v sum_i weights_i |values_i - v|
double least_weighted_distance(const ArrayXd& values, const ArrayXd& weights) {
  std::vector<Eigen::Index> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](Eigen::Index i) { return values[i]; });
  const double half = weights.sum() / 2;
  double below = 0;
  for (const Eigen::Index i : order) {
    below += weights[i];
    if (below >= half) return (weights * (values - values[i]).abs()).sum();
  }
  return 0;  // no values
}

// Slacks or multipliers, or a step of them: for t >= x - u, t >= u - x, columns and rows.
struct Parts {
  ArrayXXd above, below;  // [n, d]
  ArrayXd columns, rows;  // [d], [n]

  double dot(const Parts& other) const {
    return (above * other.above).sum() + (below * other.below).sum() +
           (columns * other.columns).sum() + (rows * other.rows).sum();
  }
  Parts operator*(const Parts& other) const {
    return {above * other.above, below * other.below, columns * other.columns, rows * other.rows};
  }
  void add(const Parts& step, double length) {
    above += length * step.above;
    below += length * step.below;
    columns += length * step.columns;
    rows += length * step.rows;
  }
  // The largest length <= 1 with this + length * step >= 0.
  double room(const Parts& step) const {
    const auto of = [](const auto& values, const auto& steps) {
      return (steps < 0).select(-values / steps, 1.0).minCoeff();
    };
    return std::min({1.0, of(above, step.above), of(below, step.below), of(columns, step.columns),
                     of(rows, step.rows)});
  }
  double count() const {
    return static_cast<double>(2 * above.size() + columns.size() + rows.size());
  }
};

struct Step {
  VectorXd offset;
  Parts slacks, multipliers;
};

class InteriorPoint {
 public:
  InteriorPoint(const ArrayXXd& tokens, double weight_columns, double weight_rows)
      : tokens_(tokens),
        weight_columns_(weight_columns),
        weight_rows_(weight_rows),
        n_(tokens.rows()),
        d_(tokens.cols()) {
    // The start u = 0 is feasible on both sides, and every iterate stays feasible.
    offset_ = VectorXd::Zero(d_);
    const double margin = tokens.abs().maxCoeff();
    const ArrayXXd bounds = tokens.abs() + margin;
    const ArrayXd columns = bounds.colwise().sum(), rows = bounds.rowwise().sum();
    slacks_ = {bounds - tokens, bounds + tokens, columns.maxCoeff() + margin - columns,
               rows.maxCoeff() + margin - rows};
    multipliers_.columns = ArrayXd::Constant(d_, weight_columns / static_cast<double>(d_));
    multipliers_.rows = ArrayXd::Constant(n_, weight_rows / static_cast<double>(n_));
    multipliers_.above =
        (multipliers_.columns.transpose().replicate(n_, 1) + multipliers_.rows.replicate(1, d_)) /
        2;
    multipliers_.below = multipliers_.above;
  }

  WeightedResidual run() {
    WeightedResidual best = reached();
    for (int i = 0; i < kIterations; ++i) {
      const double length = advance();
      WeightedResidual next = reached();
      best.lower = std::max(best.lower, next.lower);
      if (value(next) < value(best)) {
        best.offset = std::move(next.offset);
        best.norms = next.norms;
      }
      if (value(best) - best.lower <= kGap * value(best) || !(length > kShortStep)) break;
    }
    return best;
  }

 private:
  double value(const WeightedResidual& at) const {
    return weight_columns_ * at.norms.columns + weight_rows_ * at.norms.rows;
  }

  WeightedResidual reached() const {
    const ArrayXd p = multipliers_.columns * (weight_columns_ / multipliers_.columns.sum());
    const ArrayXd q = multipliers_.rows * (weight_rows_ / multipliers_.rows.sum());
    double lower = 0;
    for (Eigen::Index j = 0; j < d_; ++j) {
      lower += least_weighted_distance(tokens_.col(j), p[j] + q);
    }
    return {offset_, residual_norms(TokenMatrix(tokens_.matrix()), offset_), lower};
  }

  // Newton's matrix, from the current slacks and multipliers. Eliminating the steps of t leaves
  // those of u, p, q, a, b.
  void factorize() {
    const ArrayXXd above = multipliers_.above / slacks_.above;
    const ArrayXXd below = multipliers_.below / slacks_.below;
    inverse_ = (above + below).inverse();
    skew_ = (above - below) * inverse_;
    Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(2 * d_ + n_ + 2, 2 * d_ + n_ + 2);
    const Eigen::Index p = d_, q = 2 * d_, a = 2 * d_ + n_, b = a + 1;
    matrix.block(0, 0, d_, d_).diagonal() = -(4 * above * below * inverse_).colwise().sum();
    matrix.block(p, 0, d_, d_).diagonal() = skew_.colwise().sum();
    matrix.block(q, 0, n_, d_) = skew_;
    matrix.block(p, p, d_, d_).diagonal() =
        slacks_.columns / multipliers_.columns + inverse_.colwise().sum().transpose();
    matrix.block(q, p, n_, d_) = inverse_;
    matrix.block(q, q, n_, n_).diagonal() =
        slacks_.rows / multipliers_.rows + inverse_.rowwise().sum();
    matrix.row(a).segment(p, d_).setOnes();
    matrix.row(b).segment(q, n_).setOnes();
    factors_.compute(matrix.selfadjointView<Eigen::Lower>());
  }

  // The step after which the products of slacks and multipliers are `products` to first order.
  Step direction(const Parts& products) const {
    const Parts missing{
        (products.above - multipliers_.above * slacks_.above) / slacks_.above,
        (products.below - multipliers_.below * slacks_.below) / slacks_.below,
        (products.columns - multipliers_.columns * slacks_.columns) / multipliers_.columns,
        (products.rows - multipliers_.rows * slacks_.rows) / multipliers_.rows};
    const ArrayXXd of_t = missing.above + missing.below;
    VectorXd right = VectorXd::Zero(2 * d_ + n_ + 2);
    right.head(d_) = -(missing.above - missing.below - skew_ * of_t).colwise().sum();
    right.segment(d_, d_) = missing.columns + (of_t * inverse_).colwise().sum().transpose();
    right.segment(2 * d_, n_) = missing.rows + (of_t * inverse_).rowwise().sum();
    const VectorXd solved = factors_.solve(right);

    Step step;
    step.offset = solved.head(d_);
    step.multipliers.columns = solved.segment(d_, d_);
    step.multipliers.rows = solved.segment(2 * d_, n_);
    const ArrayXXd of_u = step.offset.transpose().array().replicate(n_, 1);
    const ArrayXXd t = (of_t - step.multipliers.columns.transpose().replicate(n_, 1) -
                        step.multipliers.rows.replicate(1, d_)) *
                           inverse_ -
                       skew_ * of_u;
    step.slacks = {t + of_u, t - of_u, solved[2 * d_ + n_] - t.colwise().sum().transpose(),
                   solved[2 * d_ + n_ + 1] - t.rowwise().sum()};
    step.multipliers.above = missing.above - multipliers_.above / slacks_.above * step.slacks.above;
    step.multipliers.below = missing.below - multipliers_.below / slacks_.below * step.slacks.below;
    return step;
  }

  // One predictor and corrector step. Returns the shorter of both sides' step lengths.
  double advance() {
    factorize();
    const double gap = slacks_.dot(multipliers_);
    Parts products{ArrayXXd::Zero(n_, d_), ArrayXXd::Zero(n_, d_), ArrayXd::Zero(d_),
                   ArrayXd::Zero(n_)};
    const Step affine = direction(products);
    Parts slacks = slacks_, multipliers = multipliers_;
    slacks.add(affine.slacks, slacks_.room(affine.slacks));
    multipliers.add(affine.multipliers, multipliers_.room(affine.multipliers));
    const double share = slacks.dot(multipliers) / gap;
    const double centre = share * share * share * gap / slacks_.count();
    const Parts bend = affine.slacks * affine.multipliers;
    products = {centre - bend.above, centre - bend.below, centre - bend.columns,
                centre - bend.rows};
    const Step step = direction(products);
    const double primal = kToBoundary * slacks_.room(step.slacks);
    const double dual = kToBoundary * multipliers_.room(step.multipliers);
    slacks_.add(step.slacks, primal);
    offset_ += primal * step.offset;
    multipliers_.add(step.multipliers, dual);
    return std::min(primal, dual);
  }

  const ArrayXXd& tokens_;
  double weight_columns_, weight_rows_;
  Eigen::Index n_, d_;
  VectorXd offset_;
  Parts slacks_, multipliers_;
  ArrayXXd inverse_, skew_;  // 1 / D and E / D, D and E sum and difference of multiplier / slack
  Eigen::PartialPivLU<Eigen::MatrixXd> factors_;
};

}  // namespace

WeightedResidual weighted_residual(const Eigen::Ref<const TokenMatrix>& tokens,
                                   double weight_columns, double weight_rows) {
  const ArrayXXd own = tokens.array();
  if (own.size() == 0 || (own == 0).all()) return {VectorXd::Zero(tokens.cols()), {}, 0};
  return InteriorPoint(own, weight_columns, weight_rows).run();
}

}  // namespace nsimplex::analysis
