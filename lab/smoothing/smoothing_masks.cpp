// Tests the collapse theorem for random masks, and the diameter bound for graphs and masks.

#include "lab/smoothing/smoothing_masks.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/analysis.h>

#include <cmath>

#include "analysis/mask_hypergraph.h"
#include "cli/output.h"
#include "graph/random_graphs.h"
#include "lab/common/verdicts.h"
#include "lab/smoothing/masked_collapse.h"

namespace nsimplex::cli {
namespace {

using analysis::ClosestSides;
using analysis::MaskedStack;
using analysis::MaskRows;
using analysis::PureHead;
using at::Tensor;

constexpr int64_t kChannels = 3;

struct Mask {
  std::string name;
  MaskRows rows;
  int64_t centre = 0, radius = 0;
};

// A window, a band, random keys or paths over these, with a centre that attends to itself.
Mask any_mask(int64_t order, RandomStream& random) {
  while (true) {
    const int64_t nodes = 3 + random.below(6);
    Mask mask;
    analysis::KeySets keys;
    switch (random.below(3)) {
      case 0:
        mask.name = "window";
        keys = analysis::window_keys(nodes, 2 + random.below(nodes - 1));
        break;
      case 1:
        mask.name = "band";
        keys = analysis::band_keys(nodes, 1 + random.below(2));
        break;
      default:
        mask.name = "random keys";
        keys = analysis::random_keys(nodes, 2 + random.below(2), random);
    }
    const bool paths = order > 1 && random.below(2) == 0;
    if (paths) mask.name += ", paths";
    mask.rows = paths ? analysis::path_mask(keys, order) : analysis::product_mask(keys, order);
    const analysis::MaskHypergraph found = analysis::mask_hypergraph(mask.rows.view());
    const analysis::Extent extent = analysis::extent_of(found.receivers, 0, nodes);
    mask.radius = extent.radius;
    for (int64_t node = 0; node < nodes && extent.radius > 0; ++node) {
      if (extent.eccentricities[node] != extent.radius || found.loops[node] == 0) continue;
      mask.centre = node;
      return mask;
    }
  }
}

struct MaskedDraw {
  Mask mask;
  std::vector<PureHead> layers;
  MaskedStack stack;
  std::string values;

  io::Safetensors file() const {
    io::Safetensors file;
    const analysis::TupleMask tuples = analysis::tuple_mask(mask.rows);
    file.tensors = {{"indices", tuples.indices}, {"offsets", tuples.offsets.flatten()}};
    for (size_t t = 0; t < stack.tokens.size(); ++t) {
      file.tensors.push_back({fmt::format("tokens.{}", t), stack.tokens[t]});
    }
    for (size_t t = 0; t < layers.size(); ++t) {
      add_weights(file, fmt::format("layer.{}.", t), layers[t]);
    }
    return file;
  }
};

MaskedDraw any_draw(int64_t order, RandomStream& random) {
  MaskedDraw draw;
  draw.mask = any_mask(order, random);
  const bool any_values = random.below(2) == 0, small = random.below(4) > 0;
  draw.values = any_values ? "any W_V" : "W_V = 1";
  const int64_t nodes = draw.mask.rows.nodes();
  for (int64_t t = 0; t < 2 * draw.mask.radius + 4; ++t) {
    PureHead head = analysis::random_head(order, kChannels);
    for (Tensor& weights : head.values) {
      if (!any_values) weights = at::eye(kChannels, at::kDouble);
      if (any_values && small) weights = weights / composite_norm(weights);
    }
    draw.layers.push_back(std::move(head));
  }
  Tensor tokens = at::randn({nodes, kChannels}, at::kDouble);
  tokens = tokens * random.unit() + at::randn({1, kChannels}, at::kDouble);
  if (small) tokens = tokens * (random.unit() / composite_norm(tokens));
  draw.stack = analysis::run_stack(draw.layers, tokens, analysis::tuple_mask(draw.mask.rows));
  return draw;
}

}  // namespace

Json test_masked(int64_t order, RandomStream& random, Verdicts& verdicts) {
  const MaskedDraw draw = any_draw(order, random);
  const MaskedStack& stack = draw.stack;
  const analysis::MaskedSteps steps =
      analysis::masked_steps(stack, draw.mask.centre, draw.mask.radius);
  const auto test = [&](const char* name, const ClosestSides(&sides)[2]) {
    for (const bool negative : {false, true}) {
      if (sides[negative].compared == 0 || !stack.assumption_holds()) continue;
      verdicts.test(
          fmt::format("{}, N = {}, {}, {}", name, order, draw.values,
                      negative ? "M < 0" : "M >= 0"),
          [&] { return draw.file(); },
          [&](analysis::Statement& each) {
            each.add_bound(sides[negative].left, sides[negative].right);
          });
    }
  };
  test("Theorem 3.4", steps.theorem);
  test("Lemma B.1", steps.lemma);
  return {{"draw", "masked"},
          {"order", order},
          {"nodes", draw.mask.rows.nodes()},
          {"mask", draw.mask.name},
          {"radius", draw.mask.radius},
          {"values", draw.values},
          {"eps", stack.least_weight},
          {"value_product", stack.value_product},
          {"largest_norm", stack.largest_norm},
          {"largest_key_norm", stack.largest_key_norm},
          {"assumption", stack.assumption_holds()}};
}

namespace {

using analysis::KeySets;
using analysis::MaskRows;
using at::Tensor;

// The constant of [S 3.1], from Gharan and Trevisan.
constexpr double kConstant = 2 * 48;

struct Family {
  std::string name;
  std::vector<int64_t> edges;
};

// Adds every pair of a clique on the nodes first .. last - 1.
void add_clique(std::vector<int64_t>& edges, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; ++i) {
    for (int64_t j = i + 1; j < last; ++j) edges.insert(edges.end(), {i, j});
  }
}

// Connected graphs on n nodes, where n is a power of two.
std::vector<Family> families(int64_t n, uint64_t seed) {
  Family chain{"chain", {}}, cycle{"cycle", {}}, star{"star", {}}, complete{"complete", {}},
      tree{"tree", {}}, grid{"grid", {}}, cube{"hypercube", {}}, barbell{"barbell", {}},
      grown{"preferential attachment", graph::preferential_attachment(n, 2, seed)};
  int64_t side = 1;
  while (side * side * 4 <= n) side *= 2;
  for (int64_t i = 1; i < n; ++i) {
    chain.edges.insert(chain.edges.end(), {i - 1, i});
    star.edges.insert(star.edges.end(), {0, i});
    tree.edges.insert(tree.edges.end(), {(i - 1) / 2, i});
    if (i % side != 0) grid.edges.insert(grid.edges.end(), {i - 1, i});
    if (i >= side) grid.edges.insert(grid.edges.end(), {i - side, i});
    for (int64_t bit = 1; bit <= i; bit *= 2) {
      if ((i & bit) != 0) cube.edges.insert(cube.edges.end(), {i - bit, i});
    }
  }
  cycle.edges = chain.edges;
  cycle.edges.insert(cycle.edges.end(), {0, n - 1});
  add_clique(complete.edges, 0, n);
  add_clique(barbell.edges, 0, n / 2);
  add_clique(barbell.edges, n / 2, n);
  barbell.edges.insert(barbell.edges.end(), {n / 2 - 1, n / 2});
  return {chain, cycle, star, complete, tree, grid, cube, barbell, grown};
}

class MaskExperiment {
 public:
  MaskExperiment(Verdicts& verdicts, const std::function<void(const Json&)>& write)
      : verdicts_(verdicts), write_(write) {}

  void test_graph(const Family& family, int64_t nodes) {
    const int64_t edges = std::ssize(family.edges) / 2;
    const std::vector<int64_t> rows{0, edges}, all{0, nodes};
    const Lengths found =
        measure({{family.edges.data(), edges, 2}, rows, all, Symmetry::undirected});
    const auto radius = static_cast<double>(found.radius);
    const auto diameter = static_cast<double>(found.diameter);
    verdicts_.test(
        "rad <= diam <= 96 ln(n) / lambda_2, graphs", [&] { return file(family.edges, 2); },
        [&](analysis::Statement& each) {
          each.add(found.connected() && radius <= diameter && diameter <= found.bound,
                   found.bound / diameter);
        });
    write(family.name, 1, nodes, found);
  }

  void test_mask(const std::string& family, const MaskRows& mask) {
    interrupt::check();
    const Lengths found = measure(mask.view());
    if (found.radius >= 0 && found.connected()) {
      verdicts_.test(
          "rad <= 96 ln(n) / lambda_2, one-way masks",
          [&] { return file(mask.values, mask.order + 1); },
          [&](analysis::Statement& each) {
            each.add_bound(static_cast<double>(found.radius), found.bound);
          });
    }
    write(family, mask.order, mask.nodes(), found);
  }

 private:
  struct Lengths {
    int64_t radius, diameter;
    double gap, bound;

    bool connected() const { return diameter >= 0; }
  };

  static Lengths measure(const graph::TupleView& view) {
    const analysis::MaskHypergraph found = analysis::mask_hypergraph(view);
    const int64_t n = view.nodes();
    const double gap = analysis::spectral_gap(found.skeleton, 0, n);
    return {analysis::extent_of(found.receivers, 0, n).radius,
            analysis::extent_of(found.skeleton, 0, n).diameter, gap,
            kConstant * std::log(static_cast<double>(n)) / gap};
  }

  static io::Safetensors file(const std::vector<int64_t>& rows, int64_t width) {
    io::Safetensors file;
    file.tensors.push_back({"tuples", at::tensor(rows, at::kLong).view({-1, width})});
    return file;
  }

  void write(const std::string& family, int64_t order, int64_t nodes, const Lengths& found) const {
    const auto length = [](int64_t value) { return value < 0 ? Json() : Json(value); };
    write_({{"draw", "mask"},
            {"family", family},
            {"order", order},
            {"nodes", nodes},
            {"radius", length(found.radius)},
            {"diameter", length(found.diameter)},
            {"lambda_2", found.gap},
            {"bound", found.bound}});
  }

  Verdicts& verdicts_;
  const std::function<void(const Json&)>& write_;
};

// Every position attends to itself and the one before; the last attends to all.
KeySets summary_keys(int64_t nodes) {
  KeySets keys = analysis::window_keys(nodes, 2);
  keys.back() = analysis::window_keys(nodes, nodes).back();
  return keys;
}

}  // namespace

void test_masks(uint64_t seed, Verdicts& verdicts, const std::function<void(const Json&)>& write) {
  MaskExperiment experiment(verdicts, write);
  RandomStream random(seed);
  for (int64_t nodes = 8; nodes <= 512; nodes *= 4) {
    for (const Family& family : families(nodes, seed)) {
      interrupt::check();
      experiment.test_graph(family, nodes);
    }
  }
  for (int64_t order = 1; order <= 3; ++order) {
    for (const int64_t nodes : {8, 16, 32, 64}) {
      const auto both = [&](const std::string& name, const KeySets& keys) {
        experiment.test_mask(name, analysis::product_mask(keys, order));
        if (order > 1) experiment.test_mask(name + ", paths", analysis::path_mask(keys, order));
      };
      both("window 2", analysis::window_keys(nodes, 2));
      both("window 4", analysis::window_keys(nodes, 4));
      both("band 1", analysis::band_keys(nodes, 1));
      both("4 random keys", analysis::random_keys(nodes, 4, random));
    }
  }
  // The tuples of the last position connect all positions, but nothing returns from there. So the
  // skeleton is a complete graph, while information moves only from one position to the next.
  for (const int64_t nodes : {40, 160, 640}) {
    experiment.test_mask("window 2 and a summary", analysis::product_mask(summary_keys(nodes), 2));
  }
}

}  // namespace nsimplex::cli
