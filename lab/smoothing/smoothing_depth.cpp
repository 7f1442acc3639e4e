// Measures how fast tokens collapse layer by layer, with several masks, norms and dtypes.

#include "lab/smoothing/smoothing_depth.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/analysis.h>

#include <cmath>
#include <limits>

#include "analysis/ascent.h"
#include "analysis/mask_hypergraph.h"
#include "cli/attention_case.h"
#include "cli/output.h"
#include "train/scores.h"

namespace nsimplex::cli {
namespace {

using analysis::MaskRows;
using at::Tensor;

Tensor normalised(const Tensor& tokens, TokenNorm norm) {
  switch (norm) {
    case TokenNorm::none:
      return tokens;
    case TokenNorm::layer:
      return at::layer_norm(tokens, {tokens.size(1)}, {}, {}, /*eps=*/0);
    case TokenNorm::rms:
      return analysis::project_rows(tokens, std::sqrt(static_cast<double>(tokens.size(1))),
                                    /*sphere=*/true);
  }
  return tokens;
}

std::string with_norm(const std::string& name, TokenNorm norm) {
  return norm == TokenNorm::none ? name : fmt::format("{} + {} norm", name, name_of(norm));
}

DepthArm unmasked(const std::string& name, int64_t order, int64_t tokens, TokenNorm norm) {
  DepthArm arm;
  arm.name = with_norm(name, norm);
  arm.order = order;
  arm.norm = norm;
  // every token sees all tokens
  arm.gap = static_cast<double>(tokens) / static_cast<double>(tokens - 1);
  return arm;
}

DepthArm masked(const std::string& name, const MaskRows& rows, TokenNorm norm) {
  const analysis::MaskHypergraph found = analysis::mask_hypergraph(rows.view());
  const int64_t nodes = rows.nodes();
  DepthArm arm;
  arm.name = with_norm(name, norm);
  arm.order = rows.order;
  arm.norm = norm;
  arm.mask = analysis::tuple_mask(rows);
  std::vector<Tensor> distances;
  for (int64_t node = 0; node < nodes; ++node) {
    distances.push_back(at::tensor(analysis::distances_from(found.receivers, node), at::kLong));
  }
  arm.distances = at::stack(distances);
  arm.radius = analysis::extent_of(found.receivers, 0, nodes).radius;
  arm.gap = analysis::spectral_gap(found.skeleton, 0, nodes);
  return arm;
}

constexpr int64_t kBestKeys = 4;

// The keys with the largest logits of the first projection, ascending.
analysis::KeySets best_keys(const analysis::PureHead& head, const Tensor& tokens, int64_t count) {
  const Tensor logits = tokens.matmul(head.keys[0]).matmul(tokens.matmul(head.keys[1]).t());
  const int64_t nodes = tokens.size(0);
  const Tensor best =
      std::get<0>(std::get<1>(logits.topk(std::min(count, nodes), /*dim=*/1)).sort(/*dim=*/1));
  analysis::KeySets keys;
  for (const Tensor& row : best.unbind()) {
    const int64_t* first = row.const_data_ptr<int64_t>();
    keys.emplace_back(first, first + row.numel());
  }
  return keys;
}

std::vector<DepthArm> best_key_arms(int64_t order, TokenNorm norm) {
  std::vector<DepthArm> arms;
  for (const bool paths : {false, true}) {
    if (paths && order == 1) continue;
    DepthArm arm;
    arm.name = with_norm(fmt::format("{} best keys{}", kBestKeys, paths ? ", paths" : ""), norm);
    arm.order = order;
    arm.norm = norm;
    arm.best_keys = kBestKeys;
    arm.paths = paths;
    arm.radius = -1;
    arm.gap = std::numeric_limits<double>::quiet_NaN();
    arms.push_back(std::move(arm));
  }
  return arms;
}

}  // namespace

std::vector<DepthArm> masked_arms(int64_t order, int64_t tokens, TokenNorm norm, uint64_t seed) {
  std::vector<DepthArm> arms;
  for (const int64_t width : {tokens, tokens / 4, int64_t{2}}) {
    arms.push_back(masked(fmt::format("window {}", width),
                          analysis::product_mask(analysis::window_keys(tokens, width), order),
                          norm));
  }
  RandomStream random(seed);
  const analysis::KeySets keys = analysis::random_keys(tokens, 4, random);
  arms.push_back(masked("4 random keys", analysis::product_mask(keys, order), norm));
  if (order > 1)
    arms.push_back(masked("4 random keys, paths", analysis::path_mask(keys, order), norm));
  return arms;
}

std::vector<DepthArm> depth_arms(int64_t order, const DepthSettings& settings, uint64_t seed) {
  const int64_t tokens = settings.tokens;
  std::vector<DepthArm> arms;
  for (const TokenNorm norm : {TokenNorm::none, TokenNorm::layer}) {
    for (const bool skip : {false, true}) {
      arms.push_back(unmasked(skip ? "skip" : "plain", order, tokens, norm));
      arms.back().skip = skip;
    }
  }
  for (const TokenNorm norm : {TokenNorm::none, TokenNorm::rms}) {
    for (DepthArm& arm : masked_arms(order, tokens, norm, seed)) arms.push_back(std::move(arm));
  }
  for (size_t i = 0, count = arms.size(); i < count; ++i) {
    if (arms[i].skip || arms[i].norm != TokenNorm::none) continue;
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      DepthArm again = arms[i];
      again.dtype = dtype;
      arms.push_back(std::move(again));
    }
  }
  for (const TokenNorm norm : {TokenNorm::none, TokenNorm::rms}) {
    for (DepthArm& arm : best_key_arms(order, norm)) arms.push_back(std::move(arm));
  }
  const auto add_other = [&](const std::string& name, TokenNorm norm, const auto& change) {
    arms.push_back(unmasked(name, order, tokens, norm));
    change(arms.back().options);
  };
  if (order > 1) {
    add_other("sum of values", TokenNorm::none, [](auto& o) { o.reduce = Reduce::sum; });
    add_other("mean of values", TokenNorm::none, [](auto& o) { o.reduce = Reduce::mean; });
  }
  if (settings.channels % (order + 1) == 0) {
    add_other("determinant", TokenNorm::none, [](auto& o) { o.form = Form::determinant; });
  }
  add_other("sigmoid", TokenNorm::rms, [](auto& o) { o.normalizer = Normalizer::sigmoid; });
  return arms;
}

Tensor run_layer(const DepthArm& arm, const analysis::PureHead& head, const Tensor& tokens) {
  analysis::PureHead own = head;
  for (Tensor& weights : own.keys) weights = weights.to(tokens.scalar_type());
  for (Tensor& weights : own.values) weights = weights.to(tokens.scalar_type());
  std::optional<analysis::TupleMask> mask = arm.mask;
  if (arm.best_keys > 0) {
    const analysis::KeySets keys = best_keys(own, tokens, arm.best_keys);
    mask = analysis::tuple_mask(arm.paths ? analysis::path_mask(keys, arm.order)
                                          : analysis::product_mask(keys, arm.order));
  }
  const Tensor next = analysis::apply(own, tokens, mask, arm.options);
  return normalised(arm.skip ? tokens + next : next, arm.norm);
}

double DepthCurve::rate() const {
  if (ratio.size() < 3) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> layers, logs;
  for (size_t i = 0; i < ratio.size(); ++i) {
    layers.push_back(static_cast<double>(i));
    logs.push_back(std::log(ratio[i]));
  }
  return -training::fit_line(layers, logs).slope;
}

DepthCurve watch_depth(const DepthArm& arm, const DepthSettings& settings) {
  DepthCurve curve;
  curve.arm = arm;
  Tensor own = at::randn({settings.tokens, settings.channels}, at::kDouble).to(arm.dtype);
  for (int64_t depth = 0; depth <= settings.layers; ++depth) {
    interrupt::check();
    if (depth > 0) {
      own = run_layer(arm, analysis::random_head(arm.order, settings.channels), own);
    }
    const Tensor tokens = own.to(at::kDouble);
    const auto norm = composite_norm(tokens).item<double>();
    if (!std::isfinite(norm)) break;
    const auto residual = minimal_residual(tokens).norm.item<double>();
    if (analysis::at_floor(residual, norm)) break;
    curve.log10_residual.push_back(std::log10(residual));
    curve.ratio.push_back(residual / norm);
    curve.effective_rank.push_back(effective_rank(tokens).item<double>());
    curve.mean_cosine.push_back(mean_cosine(tokens).item<double>());
    curve.dirichlet_energy.push_back(dirichlet_energy(tokens).item<double>());
  }
  return curve;
}

Json to_json(const DepthCurve& curve) {
  const DepthArm& arm = curve.arm;
  return {{"curve", arm.name},
          {"order", arm.order},
          {"norm", name_of(arm.norm)},
          {"masked", arm.mask.has_value() || arm.best_keys > 0},
          {"radius", arm.radius < 0 ? Json() : Json(arm.radius)},
          {"lambda_2", std::isnan(arm.gap) ? Json() : Json(arm.gap)},
          {"dtype", name_of(arm.dtype)},
          {"rate", curve.rate()},
          {"log10_residual", curve.log10_residual},
          {"ratio", curve.ratio},
          {"effective_rank", curve.effective_rank},
          {"mean_cosine", curve.mean_cosine},
          {"dirichlet_energy", curve.dirichlet_energy}};
}

void test_curves(const std::vector<DepthCurve>& curves, Verdicts& verdicts) {
  for (const DepthCurve& one : curves) {
    for (const DepthCurve& other : curves) {
      const DepthArm &a = one.arm, &b = other.arm;
      if (a.order != b.order) continue;
      const auto file = [&] {
        io::Safetensors file;
        file.tensors = {{"ratio.1", at::tensor(one.ratio, at::kDouble)},
                        {"ratio.2", at::tensor(other.ratio, at::kDouble)}};
        return file;
      };
      if (a.name == b.name && a.dtype == at::kDouble && b.dtype != at::kDouble) {
        verdicts.test(fmt::format("{} reaches the floor in no more layers", name_of(b.dtype)), file,
                      [&](analysis::Statement& each) {
                        each.add_bound(static_cast<double>(other.ratio.size()),
                                       static_cast<double>(one.ratio.size()));
                      });
      }
      const bool comparable = a.mask && b.mask && a.norm == TokenNorm::rms &&
                              b.norm == TokenNorm::rms && !std::isnan(one.rate()) &&
                              !std::isnan(other.rate());
      if (comparable && a.radius > 0 && a.radius < b.radius) {
        verdicts.test("a larger radius collapses slower, rms norm", file,
                      [&](analysis::Statement& each) {
                        each.add(other.rate() < one.rate(), one.rate() - other.rate());
                      });
      }
    }
  }
}

}  // namespace nsimplex::cli
