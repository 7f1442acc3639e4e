// `nsimplex lab smoothing`: tests the theorem on collapse and its lemmas, and measures collapse as
// a function of depth.

#include "lab/smoothing/smoothing_command.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/analysis.h>

#include <algorithm>
#include <cmath>

#include "analysis/collapse.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "lab/common/verdicts.h"
#include "lab/experiments.h"
#include "lab/smoothing/masked_collapse.h"
#include "lab/smoothing/smoothing_depth.h"
#include "lab/smoothing/smoothing_flow.h"
#include "lab/smoothing/smoothing_masks.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

using analysis::Statement;
using at::Tensor;

// Relative tolerance for equalities in the proof.
constexpr double kRounding = 1e-9;
// Tolerance when both sides use the minimiser, which has a gap of 1e-7.
constexpr double kTolerance = 1e-6;

std::string suffix(bool assumption) { return assumption ? "" : ", without its assumption"; }

struct Draw {
  analysis::PureHead head;
  Tensor tokens;

  io::Safetensors file() const {
    io::Safetensors file;
    file.tensors.push_back({"tokens", tokens});
    add_weights(file, "", head);
    return file;
  }
};

// A few tokens, with sizes over two decades, close to each other or not.
Tensor any_tokens(RandomStream& random) {
  const int64_t n = 2 + random.below(4), d = 1 + random.below(8);
  const double scale = std::pow(10, -1.5 + 2 * random.unit());
  const double spread = std::pow(10, -2 * random.unit());
  return scale * (at::randn({1, d}, at::kDouble) + spread * at::randn({n, d}, at::kDouble));
}

class Test {
 public:
  Test(const Draw& draw, Verdicts& verdicts) : draw_(draw), verdicts_(verdicts) {}

  void bound(const std::string& name, double left, double right, double tolerance) {
    verdicts_.test(
        name, [this] { return draw_.file(); },
        [&](Statement& each) { each.add_bound(left, right, tolerance); });
  }

 private:
  const Draw& draw_;
  Verdicts& verdicts_;
};

void test_lemmas(const Draw& draw, Test& test) {
  const Tensor offset = minimal_residual(draw.tokens).offset;
  const analysis::CollapseLemmas lemmas = analysis::collapse_lemmas(draw.head, draw.tokens, offset);
  test.bound("Lemma A.1: first-order logits are sums over axes", lemmas.additive, kRounding, 0);
  test.bound("Lemma A.2: separable weights make equal rows", lemmas.row_constant, kRounding, 0);
  if (lemmas.logit_range <= CollapseBound::kLargestRange) {
    test.bound("Lemma A.3: (1 - D) P~ <= P", 1, lemmas.below, kRounding);
    test.bound("Lemma A.3: P <= (1 + 2 D) P~", 1, lemmas.above, kRounding);
  }
  const auto norm = composite_norm(draw.tokens).item<double>();
  const auto norm_of = [&](const Tensor& row) {
    return composite_norm(row.expand_as(draw.tokens)).item<double>();
  };
  test.bound("||1 u^T|| <= ||X||, u the minimiser", norm_of(offset), norm, kRounding);
  test.bound("||1 u^T|| <= ||X||, u the mean", norm_of(draw.tokens.mean(0)), norm, kRounding);
}

}  // namespace

Json test_theorem(int64_t order, RandomStream& random, Verdicts& verdicts) {
  const Tensor tokens = any_tokens(random);
  const Draw draw{analysis::random_head(order, tokens.size(1)), tokens};
  const CollapseBound bound = analysis::collapse_bound(draw.head, draw.tokens);
  const bool floor = analysis::at_floor(bound.next_residual, bound.next_norm);
  Test test(draw, verdicts);
  if (!floor) {
    test.bound(fmt::format("Theorem 3.1, N = {}{}", order, suffix(bound.assumption_holds())),
               bound.next_residual, bound.bound, kTolerance);
  }
  test_lemmas(draw, test);
  Draw projected = draw;
  projected.head.output =
      at::randn_like(draw.head.values.front()) / std::sqrt(static_cast<double>(tokens.size(1)));
  const CollapseBound wider = analysis::collapse_bound(projected.head, tokens);
  if (wider.assumption_holds() && !analysis::at_floor(wider.next_residual, wider.next_norm)) {
    Test(projected, verdicts)
        .bound(fmt::format("Theorem 3.1 with an output projection, N = {}", order),
               wider.next_residual, wider.bound, kTolerance);
  }
  return {{"draw", "theorem"},
          {"order", order},
          {"tokens", tokens.size(0)},
          {"dim", tokens.size(1)},
          {"norm", composite_norm(tokens).item<double>()},
          {"residual", bound.residual},
          {"next_residual", bound.next_residual},
          {"bound", bound.bound},
          {"gamma", bound.gamma},
          {"logit_range", bound.logit_range},
          {"assumption", bound.assumption_holds()},
          {"floor", floor}};
}

Json test_corollary(int64_t order, RandomStream& random, Verdicts& verdicts) {
  const Tensor tokens = any_tokens(random);
  const int64_t depth = 1 + random.below(3), heads = 1 + random.below(3);
  std::vector<std::vector<analysis::PureHead>> layers(depth);
  for (auto& layer : layers) {
    for (int64_t h = 0; h < heads; ++h) {
      layer.push_back(analysis::random_head(order, tokens.size(1)));
    }
  }
  const DepthBound bound = depth_bound(layers, tokens);
  const auto last = [](const Tensor& values) { return values[-1].item<double>(); };
  const double log_residual = last(bound.residual), log_bound = last(bound.bound);
  bool floor = false;
  for (int64_t t = 0; t <= depth; ++t) {
    floor = floor || analysis::at_floor(std::exp(bound.residual[t].item<double>()),
                                        bound.norm[t].item<double>());
  }
  const auto file = [&] {
    io::Safetensors file;
    file.tensors.push_back({"tokens", tokens});
    for (int64_t t = 0; t < depth; ++t) {
      for (int64_t h = 0; h < heads; ++h) {
        add_weights(file, fmt::format("layer.{}.head.{}.", t, h), layers[t][h]);
      }
    }
    return file;
  };
  if (!floor) {
    verdicts.test(fmt::format("Corollary 3.2, N = {}{}", order, suffix(bound.assumption_holds())),
                  file, [&](Statement& each) {
                    const double room = log_bound - log_residual;
                    each.add(room >= -kTolerance, room);
                  });
  }
  return {{"draw", "stack"},
          {"order", order},
          {"tokens", tokens.size(0)},
          {"dim", tokens.size(1)},
          {"layers", depth},
          {"heads", heads},
          {"log_residual", log_residual},
          {"log_bound", log_bound},
          {"logit_range", bound.logit_range},
          {"assumption", bound.assumption_holds()},
          {"floor", floor}};
}

Json test_derivatives(int64_t order, RandomStream& random, Verdicts& verdicts) {
  const Tensor tokens = any_tokens(random).slice(0, 0, 4);
  const Draw draw{analysis::random_head(order, tokens.size(1)), tokens};
  const analysis::TokenDerivatives found = analysis::token_derivatives(draw.head, tokens);
  const auto spectral = [](const Tensor& matrices) {
    return at::linalg_matrix_norm(matrices, 2).max().item<double>();
  };
  const auto values = spectral(found.values), weights = spectral(found.weights);
  const auto logits = at::linalg_vector_norm(found.logits, 2, {-1}).max().item<double>();
  const auto radius = at::linalg_vector_norm(tokens, 2, {-1}).max().item<double>();
  const double key = spectral(at::stack(draw.head.keys)), n = static_cast<double>(order);
  const double value = std::pow(spectral(at::stack(draw.head.values)), n);
  const double root = std::sqrt(static_cast<double>(tokens.size(1)));
  const double slope = root * std::pow(key, n + 1) * std::pow(radius, n);
  Test test(draw, verdicts);
  test.bound("Lemma C.1", values, n * value * std::pow(radius, n - 1), kRounding);
  test.bound("Lemma C.2, N as printed", weights, n * value * std::pow(radius, n) * slope,
             kRounding);
  test.bound("Lemma C.2, N + 1", weights, (n + 1) * value * std::pow(radius, n) * slope, kRounding);
  test.bound("Lemma C.2's logits: |dB| <= sqrt(d) N K^(N+1) R^N", logits, n * slope, kRounding);
  test.bound("Lemma C.2's logits, N + 1", logits, (n + 1) * slope, kRounding);
  return {{"draw", "derivatives"}, {"order", order},   {"tokens", tokens.size(0)},
          {"dim", tokens.size(1)}, {"radius", radius}, {"values", values},
          {"weights", weights},    {"logits", logits}};
}

namespace {

constexpr int64_t kMostDeepOrders = 3;

struct SmoothingOptions : CommonOptions {
  int64_t draws = 250, order = 4;
  double time = 20;
  DepthSettings depth;
};

void record(RunLog& log, const Json& line, bool shown) {
  Json named{{"analysis", "smoothing"}};
  named.update(line);
  log.write("smoothing", named, shown);
}

void test_draws(const SmoothingOptions& options, Verdicts& verdicts, RunLog& log) {
  RandomStream random(options.seed);
  ProgressBar bar("draws", options.draws * options.order, options.json);
  for (int64_t order = 1, done = 0; order <= options.order; ++order) {
    for (int64_t i = 0; i < options.draws; ++i) {
      interrupt::check();
      record(log, test_theorem(order, random, verdicts), false);
      record(log, test_corollary(order, random, verdicts), false);
      record(log, test_derivatives(order, random, verdicts), false);
      if (order <= kMostDeepOrders) record(log, test_masked(order, random, verdicts), false);
      bar.update(++done);
    }
  }
}

std::vector<std::string> row_of(const DepthCurve& curve, int64_t layers) {
  std::vector<std::string> row{fmt::format("N = {}, {}", curve.arm.order, curve.arm.name),
                               curve.arm.radius < 0 ? "-" : fmt::format("{}", curve.arm.radius),
                               fmt::format("{:.3f}", curve.rate())};
  for (const int64_t layer : {int64_t{0}, layers / 4, layers / 2, layers}) {
    const auto place = static_cast<size_t>(layer);
    row.push_back(place < curve.ratio.size() ? fmt::format("{:.2e}", curve.ratio[place]) : "floor");
  }
  return row;
}

// Runs the stacks and returns a table of those in float64.
std::string watch_stacks(const SmoothingOptions& options, Verdicts& verdicts, RunLog& log) {
  const int64_t layers = options.depth.layers;
  Table table({"||res|| / ||X|| at layer", "radius", "rate", "0", fmt::format("{}", layers / 4),
               fmt::format("{}", layers / 2), fmt::format("{}", layers)});
  std::vector<DepthArm> arms;
  for (int64_t order = 1; order <= std::min(options.order, kMostDeepOrders); ++order) {
    for (const DepthArm& arm : depth_arms(order, options.depth, options.seed)) {
      arms.push_back(arm);
    }
  }
  std::vector<DepthCurve> curves;
  ProgressBar bar("stacks", std::ssize(arms), options.json);
  for (const DepthArm& arm : arms) {
    at::manual_seed(options.seed);  // the same weights in all arms of an order
    curves.push_back(watch_depth(arm, options.depth));
    record(log, to_json(curves.back()), true);
    if (arm.dtype == at::kDouble) table.add(row_of(curves.back(), layers));
    bar.update(std::ssize(curves));
  }
  test_curves(curves, verdicts);
  return table.text();
}

// Measures effects that no theorem covers: distant tokens, continuous time, large entries.
void measure_beside(const SmoothingOptions& options, Verdicts& verdicts, RunLog& log) {
  const int64_t orders = std::min(options.order, kMostDeepOrders);
  const auto write = [&](const Json& line) { record(log, line, !line.contains("seed")); };
  ProgressBar bar("squashing, flows, entries", orders, options.json);
  for (int64_t order = 1; order <= orders; ++order) {
    at::manual_seed(options.seed);
    test_squashing(order, options.depth, options.seed, verdicts, write);
    test_flows({.order = order,
                .tokens = std::min<int64_t>(options.depth.tokens, 8),
                .channels = options.depth.channels,
                .time = options.time},
               verdicts, write);
    sweep_entries(order, options.depth, write);
    bar.update(order);
  }
}

int run_smoothing(const SmoothingOptions& options) {
  RunLog log(options);
  Verdicts verdicts(options.out);
  test_draws(options, verdicts, log);
  test_masks(options.seed, verdicts, [&](const Json& line) { record(log, line, false); });
  const std::string stacks = watch_stacks(options, verdicts, log);
  measure_beside(options, verdicts, log);
  for (const Json& line : verdicts.lines()) log.write("statement", line);
  if (!options.json) print(statements_table(verdicts.statements()) + "\n" + stacks);
  return 0;
}

}  // namespace

void add_analyze_smoothing(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<SmoothingOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "smoothing",
       .summary = "Test how fast attention collapses tokens: the theorems, and stacks of layers",
       .examples = "nsimplex lab smoothing --threads 1\n"
                   "nsimplex lab smoothing --draws 1000 --out runs/smoothing --json"},
      options, run_smoothing);
  const auto add = option_adder(command, "Smoothing");
  add("--draws", options->draws, "Random heads and tokens per order")
      ->check(within(int64_t{1}, int64_t{1} << 30));
  add("--order", options->order, "Largest order, from 1 on; stacks have orders up to 3")
      ->check(within(int64_t{1}, int64_t{4}));
  add("--tokens", options->depth.tokens, "Tokens of the stacks of layers")
      ->check(within(int64_t{8}, int64_t{64}));
  add("--width", options->depth.channels, "Channels of the stacks of layers")
      ->check(within(int64_t{1}, int64_t{1024}));
  add("--time", options->time, "End time of the continuous-time model, which runs in steps of 0.1")
      ->check(within(1.0, 1e6));
  add("--layers", options->depth.layers, "Number of layers of the stacks")
      ->check(within(int64_t{4}, int64_t{10000}));
}

}  // namespace nsimplex::cli
