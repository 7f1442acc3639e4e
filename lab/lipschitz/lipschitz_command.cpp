// `nsimplex lab lipschitz`: compares the largest derivatives of N-simplicial attention over a ball
// of tokens with the bounds of the literature.

#include "lab/lipschitz/lipschitz_command.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/analysis.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "cli/output.h"
#include "cli/run_folder.h"
#include "lab/common/verdicts.h"
#include "lab/experiments.h"
#include "lab/lipschitz/propositions.h"
#include "support/error.h"
#include "support/median.h"
#include "train/scores.h"

namespace nsimplex::cli {
namespace {

using analysis::Statement;

// The bound's exponents: in the tokens, and in the width for large logits.
constexpr double kMostInTokens = 1.5, kMostInDim = 0.5;
constexpr double kNear = 0.1;  // tolerance for equal exponents

// (place on the axis, constant), ascending.
using Line = std::vector<std::pair<double, double>>;
// By tokens, dim and radius; the axis' own value is 0.
using Lines = std::map<std::tuple<double, double, double>, Line>;

enum class Axis { tokens, dim, radius };

// The lines with two points or more.
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

// Exponent from a least squares fit of the logarithms.
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
  return {statement, {{"exponent", median(exponents)}}};
}

// Lines of the order and those of order 1 with the same width and radius.
GrowthStatement beside_pairs(const std::vector<LipschitzPoint>& points, int64_t order) {
  Statement statement(
      fmt::format("exponent in the tokens not above that of order 1, order {}", order));
  const Lines pairs = lines_along(Axis::tokens, points, 1);
  std::vector<double> differences;
  for (const auto& each : lines_along(Axis::tokens, points, order)) {
    const auto pair = pairs.find(each.first);
    if (order == 1 || pair == pairs.end()) continue;
    // Over the same tokens, since a longer line of order 1 may be flatter at its end.
    const std::span same(pair->second);
    const Line& line = each.second;
    const double difference =
        exponent(line) - exponent(same.first(std::min(same.size(), line.size())));
    differences.push_back(difference);
    statement.add(difference <= kNear, -difference);
  }
  return {statement, {{"difference", median(differences)}}};
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
          {small, {{"exponent", median(small_exponents)}}},
          {large, {{"exponent", median(large_exponents)}}}};
}

namespace {

using analysis::ProjectedAttention;
using analysis::Statement;
using at::Tensor;

struct LipschitzOptions : CommonOptions {
  std::vector<int64_t> orders{1, 2, 3, 4}, tokens{2, 4, 8}, dims{2, 4};
  std::vector<double> radii{0.01, 0.02, 1, 3};
  double key_norm = 1, value_norm = 1;
  int64_t draws = 8, starts = 4, steps = 100, tuples = 8192;
};

std::vector<LipschitzPoint> sweep_of(const LipschitzOptions& options) {
  std::vector<LipschitzPoint> points;
  for (const int64_t order : options.orders) {
    for (const int64_t dim : options.dims) {
      for (const double radius : options.radii) {
        for (const int64_t tokens : options.tokens) {
          const double tuples = std::pow(static_cast<double>(tokens), order + 1);
          if (tuples > static_cast<double>(options.tuples)) continue;
          points.push_back({order, tokens, dim, radius});
        }
      }
    }
  }
  return points;
}

// One number per draw, by the name of the bound.
using Bounds = std::map<std::string, std::vector<double>>;

Bounds bounds_of(const LipschitzPoint& point, const ProjectedAttention& attention,
                 const LipschitzOptions& options) {
  const AttentionSize size{.order = point.order,
                           .tokens = point.tokens,
                           .head_dim = point.dim,
                           .radius = point.radius,
                           .key_norm = options.key_norm,
                           .value_norm = options.value_norm};
  const auto all = [&](LipschitzForm form) {
    return std::vector<double>(options.draws, lipschitz_bound(size, form));
  };
  Bounds bounds{{"printed", all(LipschitzForm::printed)},
                {"proof", all(LipschitzForm::proof)},
                {"all_factors", all(LipschitzForm::all_factors)}};
  if (point.order > 1) return bounds;
  const Tensor form = attention.keys[0].matmul(attention.keys[1].transpose(1, 2));
  const Tensor norms = at::linalg_matrix_norm(form, 2) / std::sqrt(static_cast<double>(point.dim));
  for (int64_t b = 0; b < options.draws; ++b) {
    bounds["pairs"].push_back(pair_lipschitz_bound(point.tokens, point.radius,
                                                   norms[b].item<double>(), options.value_norm));
  }
  return bounds;
}

// Repeats every problem once per start, one after the other.
ProjectedAttention repeated(const ProjectedAttention& attention, int64_t starts) {
  ProjectedAttention all;
  for (const Tensor& each : attention.keys) all.keys.push_back(each.repeat_interleave(starts, 0));
  for (const Tensor& each : attention.values) {
    all.values.push_back(each.repeat_interleave(starts, 0));
  }
  return all;
}

// The weights, the tokens and the direction of a problem that violates a bound.
io::Safetensors counterexample(const ProjectedAttention& attention, const LipschitzEstimate& found,
                               int64_t problem) {
  analysis::PureHead head;
  for (const Tensor& each : attention.keys) head.keys.push_back(each[problem]);
  for (const Tensor& each : attention.values) head.values.push_back(each[problem]);
  io::Safetensors file;
  add_weights(file, "", head);
  file.tensors.push_back({"input", found.input[problem]});
  file.tensors.push_back({"direction", found.direction[problem]});
  return file;
}

class LipschitzExperiment {
 public:
  LipschitzExperiment(const LipschitzOptions& options, RunLog& log)
      : options_(options), log_(log), verdicts_(options.out) {}

  // Draws weights, climbs from several draws of tokens each, and compares the best with every
  // bound.
  void measure(LipschitzPoint point) {
    // Points of one order and width have the same weights. Those that differ only in the radius
    // also have the same directions, so that the draw does not cause their difference.
    at::manual_seed(options_.seed + 1000 * static_cast<uint64_t>(point.order) +
                    1000000 * static_cast<uint64_t>(point.dim));
    const ProjectedAttention drawn = analysis::random_attention(
        point.order, options_.draws, point.dim, options_.key_norm, options_.value_norm);
    const ProjectedAttention attention = repeated(drawn, options_.starts);
    const int64_t problems = options_.draws * options_.starts;
    const Tensor start = at::randn({problems, point.tokens, point.dim}, at::kDouble) *
                         (point.radius / std::sqrt(static_cast<double>(point.dim)));
    const LipschitzEstimate found = lipschitz_constant(
        [&](const analysis::Tensors& x) { return attention(x[0]); }, start, point.radius,
        {.steps = options_.steps, .tolerance = 1e-6, .between = interrupt::check});
    const auto [values, places] = found.value.view({options_.draws, options_.starts}).max(1);
    std::vector<double> constants;
    for (int64_t b = 0; b < options_.draws; ++b) constants.push_back(values[b].item<double>());
    point.constant = median(constants);
    points_.push_back(point);
    Json line{{"analysis", "lipschitz"},    {"order", point.order},
              {"tokens", point.tokens},     {"dim", point.dim},
              {"radius", point.radius},     {"draws", options_.draws},
              {"constant", point.constant}, {"largest", std::ranges::max(constants)}};
    for (const auto& [name, bounds] : bounds_of(point, drawn, options_)) {
      line[name] = median(bounds);
      const std::string text = fmt::format("constant <= bound {}, order {}", name, point.order);
      for (int64_t b = 0; b < options_.draws; ++b) {
        const int64_t best = b * options_.starts + places[b].item<int64_t>();
        const double bound = bounds[b];
        verdicts_.test(
            text, [&] { return counterexample(attention, found, best); },
            [&](Statement& each) { each.add_bound(constants[b], bound); });
      }
    }
    log_.write("lipschitz", line, false);
  }

  // All statements, as lines and as a table.
  void conclude() {
    for (const Json& line : verdicts_.lines()) log_.write("statement", line);
    std::vector<Statement> statements = verdicts_.statements();
    for (const int64_t order : options_.orders) {
      for (const auto& [statement, figures] : lipschitz_growth(points_, order)) {
        if (statement.draws() == 0) continue;
        Json line = to_json(statement);
        line.update(figures);
        log_.write("statement", line);
        statements.push_back(statement);
      }
    }
    if (!options_.json) print(statements_table(statements));
  }

 private:
  const LipschitzOptions& options_;
  RunLog& log_;
  Verdicts verdicts_;
  std::vector<LipschitzPoint> points_;
};

int run_lipschitz(const LipschitzOptions& options) {
  const std::vector<LipschitzPoint> sweep = sweep_of(options);
  RunLog log(options);
  LipschitzExperiment experiment(options, log);
  ProgressBar bar("lipschitz", std::ssize(sweep), options.json);
  for (size_t i = 0; i < sweep.size(); ++i) {
    experiment.measure(sweep[i]);
    bar.update(static_cast<int64_t>(i) + 1);
  }
  bar.finish();
  experiment.conclude();
  return 0;
}

}  // namespace

void add_analyze_lipschitz(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<LipschitzOptions>();
  const auto sizes = within(int64_t{1}, int64_t{1} << 20);
  CLI::App& command = add_command(
      parent, session,
      {.name = "lipschitz",
       .summary =
           "Compare Lipschitz constants of attention over a ball of tokens with their bounds",
       .examples = "nsimplex lab lipschitz --out runs/lipschitz\n"
                   "nsimplex lab lipschitz --orders 1,2 --tokens 2,4,8,16 --json"},
      options, run_lipschitz);
  const auto add = option_adder(command, "Sweep");
  add("--orders", options->orders, "Numbers of key axes")
      ->delimiter(',')
      ->check(within(int64_t{1}, int64_t{8}));
  add("--tokens", options->tokens, "Lengths")->delimiter(',')->check(sizes);
  add("--widths", options->dims, "Widths of tokens and heads")->delimiter(',')->check(sizes);
  add("--radii", options->radii, "Radii of the ball: the largest norms of a token")
      ->delimiter(',')
      ->check(above_zero());
  add("--key-norm", options->key_norm, "Spectral norm of every query and key projection")
      ->check(above_zero());
  add("--value-norm", options->value_norm, "Spectral norm of every value projection")
      ->check(above_zero());
  add("--draws", options->draws, "Draws of weights and tokens per point")->check(sizes);
  add("--starts", options->starts, "Ascents per draw; the best counts")->check(sizes);
  add("--steps", options->steps, "Most steps of an ascent")->check(sizes);
  add("--tuples", options->tuples,
      "Skip points with more than this number of tuples, tokens^(order + 1)")
      ->check(sizes);
}

}  // namespace nsimplex::cli
