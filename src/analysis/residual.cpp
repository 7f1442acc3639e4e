#include "analysis/residual.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

namespace nsimplex::analysis {
namespace {

constexpr int kMostProgrammes = 100;
constexpr double kNearSlopes = 1e-7;  // slopes that differ by less are one

double median(Eigen::VectorXd values) {
  const auto middle = values.begin() + (values.size() - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What one programme says of the plane: slope a + b >= height, and a point of the set.
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

// The corners of what is above all lines, of rising slope, and between the rays b >= a / n and
// b <= d a, in which all (a, b) lie.
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

// A slope that cuts the corner off: that of the points on both sides of it, so that an edge of the
// set is found at once; NaN where no slope lies between.
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
  Eigen::VectorXd centre(tokens.cols());
  for (Eigen::Index j = 0; j < tokens.cols() && tokens.rows() > 0; ++j) {
    centre[j] = median(tokens.col(j));
  }
  ResidualMinimum best{centre, residual_norms(tokens, centre).composite()};
  TokenMatrix own = tokens.rowwise() - centre.transpose();
  const double size = own.size() == 0 ? 0 : own.cwiseAbs().maxCoeff();
  if (size == 0) return best;
  own /= size;

  const double n = static_cast<double>(own.rows()), d = static_cast<double>(own.cols());
  std::vector<Line> lines;  // of rising slope
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

}  // namespace nsimplex::analysis
