#include "cli/lipschitz_growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "training/statistics.h"

namespace nsimplex::cli {
namespace {

using analysis::Statement;

// The bound's exponents: in the tokens, and in the width where logits are large.
constexpr double kMostInTokens = 1.5, kMostInDim = 0.5;
constexpr double kNear = 0.1;  // of exponents that are the same

// (place on the axis, constant), in rising order.
using Line = std::vector<std::pair<double, double>>;
// By tokens, dim and radius, the axis' own being 0.
using Lines = std::map<std::tuple<double, double, double>, Line>;

enum class Axis { tokens, dim, radius };

// The lines of two points or more.
Lines lines_along(Axis axis, const std::vector<LipschitzPoint>& points, int64_t order) {
  Lines lines;
  for (const LipschitzPoint& point : points) {
    if (point.order != order) continue;
    double place[] = {static_cast<double>(point.tokens), static_cast<double>(point.dim),
                      point.radius};
    const double along = std::exchange(place[static_cast<size_t>(axis)], 0);
    lines[{place[0], place[1], place[2]}].emplace_back(along, point.constant);
  }
  std::erase_if(lines, [](const auto& each) { return each.second.size() < 2; });
  for (auto& each : lines) std::ranges::sort(each.second);
  return lines;
}

// Exponent by least squares of the logarithms.
double exponent(std::span<const std::pair<double, double>> line) {
  std::vector<double> x, y;
  for (const auto& point : line) {
    x.push_back(std::log(point.first));
    y.push_back(std::log(point.second));
  }
  return training::fit_line(x, y).slope;
}

GrowthStatement at_most(Axis axis, double most, const std::string& text,
                        const std::vector<LipschitzPoint>& points, int64_t order) {
  Statement statement(fmt::format("exponent in the {}, order {}", text, order));
  std::vector<double> exponents;
  for (const auto& each : lines_along(axis, points, order)) {
    exponents.push_back(exponent(each.second));
    statement.add(exponents.back() <= most, most - exponents.back());
  }
  return {statement, {{"exponent", training::median(exponents)}}};
}

// Lines of the order beside those of order 1 with the same width and radius.
GrowthStatement beside_pairs(const std::vector<LipschitzPoint>& points, int64_t order) {
  Statement statement(
      fmt::format("exponent in the tokens not above that of order 1, order {}", order));
  const Lines pairs = lines_along(Axis::tokens, points, 1);
  std::vector<double> differences;
  for (const auto& each : lines_along(Axis::tokens, points, order)) {
    const auto pair = pairs.find(each.first);
    if (order == 1 || pair == pairs.end()) continue;
    // Over the same tokens: a longer line of order 1 may be flatter at its end.
    const std::span same(pair->second);
    const Line& line = each.second;
    const double difference =
        exponent(line) - exponent(same.first(std::min(same.size(), line.size())));
    differences.push_back(difference);
    statement.add(difference <= kNear, -difference);
  }
  return {statement, {{"difference", training::median(differences)}}};
}

}  // namespace

std::vector<GrowthStatement> lipschitz_growth(const std::vector<LipschitzPoint>& points,
                                              int64_t order) {
  const auto expected = static_cast<double>(order - 1);
  Statement small(
      order == 1 ? "does not vanish with the radius, order 1"
                 : fmt::format("vanishes with the radius as R^{}, order {}", order - 1, order));
  Statement large(fmt::format("grows with a large radius, order {}", order));
  std::vector<double> small_exponents, large_exponents;
  for (const auto& each : lines_along(Axis::radius, points, order)) {
    const std::span all(each.second);
    small_exponents.push_back(exponent(all.first(2)));
    const double off = std::abs(small_exponents.back() - expected);
    small.add(off <= kNear, kNear - off);
    large_exponents.push_back(exponent(all.last(2)));
    large.add(large_exponents.back() > 0, large_exponents.back());
  }
  return {at_most(Axis::tokens, kMostInTokens, "tokens at most 3/2", points, order),
          beside_pairs(points, order),
          at_most(Axis::dim, kMostInDim, "width at most 1/2", points, order),
          {small, {{"exponent", training::median(small_exponents)}}},
          {large, {{"exponent", training::median(large_exponents)}}}};
}

}  // namespace nsimplex::cli
