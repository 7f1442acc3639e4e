#include "cli/smoothing_masked.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/analysis_smoothing.h>

#include <cmath>

#include "analysis/mask_hypergraph.h"
#include "analysis/masked_collapse.h"
#include "cli/head_weights.h"

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

// A window, a band, random keys or paths over these, with a centre that sees itself.
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

}  // namespace nsimplex::cli
