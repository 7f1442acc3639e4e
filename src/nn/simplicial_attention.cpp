#include <ATen/ops/rms_norm.h>
#include <nsimplex/layers.h>
#include <nsimplex/rotary.h>

#include <algorithm>
#include <cmath>

#include "kernels/common/attention_problem.h"
#include "nn/initialize.h"
#include "nn/routing_layers.h"
#include "support/require.h"

namespace nsimplex {
namespace {

// Far below any norm that is not noise, so normalised heads keep norm 1. It only protects an
// all-zero head.
constexpr double kHeadNormEpsilon = 1e-6;

// Checks the options and fills in the derived ones.
SimplicialAttentionOptions complete(SimplicialAttentionOptions o) {
  const char* at = "[SimplicialAttention] ";
  require(o.dim > 0, at, "dim: expected a positive width, got ", o.dim);
  require(o.heads > 0, at, "heads: expected at least 1, got ", o.heads);
  require(o.order >= 1 && o.order <= kernels::kMaxOrder, at, "order: expected 1 to ",
          kernels::kMaxOrder, ", got ", o.order);
  require(o.head_dim >= 0, at, "head_dim: expected a positive width, got ", o.head_dim);
  if (o.head_dim == 0) {
    require(o.dim % o.heads == 0, at, "heads: expected a divisor of dim ", o.dim, ", got ",
            o.heads);
    o.head_dim = o.dim / o.heads;
  }
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  require(o.kv_heads > 0 && o.heads % o.kv_heads == 0, at, "kv_heads: expected a divisor of heads ",
          o.heads, ", got ", o.kv_heads);

  const auto axes = static_cast<size_t>(o.order);
  require(o.context_dims.empty() || o.context_dims.size() == axes, at,
          "context_dims: expected 0 or ", axes, " entries, got ", o.context_dims.size());
  for (const int64_t width : o.context_dims) {
    require(width > 0, at, "context_dims: expected positive widths, got ", width);
  }
  require(o.window.size() <= 1 || o.window.size() == axes, at, "window: expected 0, 1 or ", axes,
          " entries, got ", o.window.size());
  for (const Window& w : o.window) {
    require(w.left == -1 || w.left >= 1, at, "window: expected left >= 1 or -1, got ", w.left);
    require(w.right >= -1, at, "window: expected right >= 0 or -1, got ", w.right);
  }

  if (const Scale* scale = std::get_if<Scale>(&o.scale)) {
    require(std::isfinite(scale->logit) && std::isfinite(scale->output), at,
            "scale: expected finite factors, got ", scale->logit, " and ", scale->output);
  }
  require(o.form == Form::product || o.head_dim % (o.order + 1) == 0, at,
          "head_dim: expected a multiple of order + 1 = ", o.order + 1,
          " for form determinant, got ", o.head_dim);
  require(o.dropout >= 0 && o.dropout < 1, at, "dropout: expected a share in [0, 1), got ",
          o.dropout);
  for (const int64_t axis : o.augment) {
    require(axis >= 0 && axis < o.order, at, "augment: expected axes 0 to ", o.order - 1, ", got ",
            axis);
    require(std::count(o.augment.begin(), o.augment.end(), axis) == 1, at,
            "augment: expected each axis once, got ", axis, " again");
  }
  require(o.augment.empty() || o.form == Form::product, at,
          "augment: expected none with form determinant, got ", o.augment.size(), " axes");
  if (o.rotary) {
    require(o.context_dims.empty(), at, "rotary: positions of different contexts do not compare");
    require(o.order == 1 || o.form == Form::determinant || o.allow_non_invariant, at,
            "rotary: form product of order ", o.order,
            " does not depend on relative positions alone; set allow_non_invariant to use it all "
            "the same");
    require(o.head_dim % 2 == 0 || o.form == Form::determinant, at,
            "rotary: expected an even head_dim, got ", o.head_dim);
    require(o.rotary_base > 0, at, "rotary_base: expected a positive number, got ", o.rotary_base);
  }
  return o;
}

at::Tensor unit_rms(const at::Tensor& heads) {
  return at::rms_norm(heads, {heads.size(-1)}, std::nullopt, kHeadNormEpsilon);
}

// [B, T, H, D] -> [B, H, T, D] without a copy, and back.
at::Tensor heads_first(const at::Tensor& x) { return x.transpose(1, 2); }

}  // namespace

SimplicialAttentionImpl::SimplicialAttentionImpl(const SimplicialAttentionOptions& options)
    : options_(complete(options)) {
  const auto& o = options_;
  const auto linear = [&o](int64_t from, int64_t to) {
    return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(o.bias));
  };
  if (o.context_dims.empty()) {
    const int64_t heads = o.heads + 2 * o.order * o.kv_heads;
    qkv_ = register_module("qkv", linear(o.dim, heads * o.head_dim));
  } else {
    q_ = register_module("q", linear(o.dim, o.heads * o.head_dim));
    kv_ = register_module("kv", torch::nn::ModuleList());
    for (const int64_t width : o.context_dims) {
      kv_->push_back(linear(width, 2 * o.kv_heads * o.head_dim));
    }
  }
  output_ = register_module("output", linear(o.heads * o.head_dim, o.dim));
  if (o.normalizer == Normalizer::softmax_sink) {
    sink_ = register_parameter("sink", at::zeros({o.heads}));
  }
  reset_parameters();
}

void SimplicialAttentionImpl::reset_parameters(const Initialization& init) {
  const auto reset = [&init](at::Tensor& weight, double gain) {
    const at::NoGradGuard no_grad;
    if (weight.dim() == 1) {
      weight.zero_();  // a bias
    } else {
      detail::initialize(weight, init.generator, gain);
    }
  };
  for (const auto& child : children()) {
    if (child == output_.ptr()) continue;
    for (at::Tensor& weight : child->parameters()) reset(weight, 1.0);
  }
  for (at::Tensor& weight : output_->parameters()) reset(weight, init.residual_gain);
  if (sink_.defined()) reset(sink_, 1.0);
}

// All projections in one product: [B, T, C] -> q, k1..kN, v1..vN, each [B, T, heads, D]. Queries
// and keys are adjacent, so that normalising and rotating them is one pass too.
std::vector<at::Tensor> SimplicialAttentionImpl::project_self(
    const at::Tensor& x, int64_t first_position, const std::optional<at::Tensor>& positions) {
  const auto& o = options_;
  const int64_t qk_heads = o.heads + o.order * o.kv_heads;
  const at::Tensor heads = qkv_->forward(x).unflatten(-1, {-1, o.head_dim});
  const auto halves = heads.split_with_sizes({qk_heads, o.order * o.kv_heads}, 2);
  at::Tensor qk = halves[0], v = halves[1];
  if (o.norm != HeadNorm::none) qk = unit_rms(qk);
  if (o.norm == HeadNorm::qkv) v = unit_rms(v);
  if (o.rotary) {
    const int64_t chunk = o.form == Form::determinant ? o.order + 1 : 2;
    const RotaryOptions turn{
        .chunk = chunk, .base = o.rotary_base, .offset = first_position, .positions = positions};
    qk = heads_first(rotary(heads_first(qk), turn));
  }

  std::vector<int64_t> sizes(o.order + 1, o.kv_heads);
  sizes[0] = o.heads;
  std::vector<at::Tensor> parts = qk.split_with_sizes(sizes, 2);
  const auto values = v.split(o.kv_heads, 2);
  parts.insert(parts.end(), values.begin(), values.end());
  return parts;
}

std::vector<at::Tensor> SimplicialAttentionImpl::project_contexts(const at::Tensor& x,
                                                                  at::TensorList contexts) {
  const auto& o = options_;
  const bool norm_qk = o.norm != HeadNorm::none, norm_v = o.norm == HeadNorm::qkv;
  std::vector<at::Tensor> parts(1 + 2 * o.order);
  parts[0] = q_->forward(x).unflatten(-1, {o.heads, o.head_dim});
  if (norm_qk) parts[0] = unit_rms(parts[0]);
  for (int64_t m = 0; m < o.order; ++m) {
    const at::Tensor& context = contexts[m];
    TORCH_CHECK(
        context.dim() == 3 && context.size(0) == x.size(0) && context.size(2) == o.context_dims[m],
        "[SimplicialAttention] contexts[", m, "]: expected shape [", x.size(0), ", T, ",
        o.context_dims[m], "], got ", context.sizes());
    const auto kv = kv_->at<torch::nn::LinearImpl>(m)
                        .forward(context)
                        .unflatten(-1, {2 * o.kv_heads, o.head_dim})
                        .split(o.kv_heads, 2);
    parts[1 + m] = norm_qk ? unit_rms(kv[0]) : kv[0];
    parts[1 + o.order + m] = norm_v ? unit_rms(kv[1]) : kv[1];
  }
  return parts;
}

void SimplicialAttentionImpl::check_input(const at::Tensor& x) const {
  TORCH_CHECK(x.dim() == 3 && x.size(2) == options_.dim,
              "[SimplicialAttention] x: expected shape [B, T, ", options_.dim, "], got ",
              x.sizes());
}

Scale SimplicialAttentionImpl::scale() const {
  const auto& o = options_;
  if (const Scale* explicit_scale = std::get_if<Scale>(&o.scale)) return *explicit_scale;
  return std::get<ScalePreset>(o.scale) == ScalePreset::unit
             ? Scale::unit(o.order, o.head_dim, o.head_dim, o.reduce)
             : Scale::standard(o.head_dim);
}

AttentionOptions SimplicialAttentionImpl::attention_options() const {
  AttentionOptions options;
  options.form = options_.form;
  options.reduce = options_.reduce;
  options.scale = scale();
  options.normalizer = options_.normalizer;
  if (sink_.defined()) options.sink = sink_;
  options.distinct = options_.distinct;
  options.augment = options_.augment;
  if (is_training()) options.dropout_p = options_.dropout;
  return options;
}

void SimplicialAttentionImpl::require_plain(const char* at,
                                            const SimplicialAttentionOptions& options) {
  require(options.normalizer == Normalizer::softmax, at, "normalizer: expected softmax");
  require(options.augment.empty(), at, "augment: expected none, got ", options.augment.size(),
          " axes");
  require(options.distinct == Distinct::none, at, "distinct: expected none");
  require(options.dropout == 0, at, "dropout: expected 0, got ", options.dropout);
}

void SimplicialAttentionImpl::leave_pairs(const std::vector<at::Tensor>& heads,
                                          const std::optional<at::Tensor>& lse) {
  if (!keeps_pairs_) return;
  pairs_ = ReusedPairs{heads[0].detach(), heads[1].detach()};
  if (lse) pairs_->lse = lse->detach();
}

std::vector<at::Tensor> SimplicialAttentionImpl::heads_of(
    const at::Tensor& x, int64_t first_position, const std::optional<at::Tensor>& positions) {
  check_input(x);
  std::vector<at::Tensor> parts = project_self(x, first_position, positions);
  for (at::Tensor& part : parts) part = heads_first(part);
  return parts;
}

at::Tensor SimplicialAttentionImpl::join_heads(const at::Tensor& out) {
  const at::Tensor joined = output_->forward(heads_first(out).flatten(2));
  if (!options_.unit_layer) return joined;
  return joined / static_cast<double>(2 * options_.order + 1);
}

void SimplicialAttentionImpl::require_cacheable() const {
  require(options_.causal && options_.context_dims.empty(),
          "[SimplicialAttention] cache: only causal self-attention can go on from one");
  require(options_.distinct == Distinct::none,
          "[SimplicialAttention] distinct: expected none with a cache");
}

at::Tensor SimplicialAttentionImpl::forward(const at::Tensor& x, at::TensorList contexts,
                                            const std::optional<at::Tensor>& key_lengths) {
  return SimplicialAttentionImpl::forward_masked(x, {.key_lengths = key_lengths}, contexts);
}

at::Tensor SimplicialAttentionImpl::forward_masked(const at::Tensor& x, const AttentionMasks& masks,
                                                   at::TensorList contexts) {
  const auto& o = options_;
  check_input(x);
  TORCH_CHECK(contexts.size() == o.context_dims.size(), "[SimplicialAttention] contexts: expected ",
              o.context_dims.size(), " tensors, got ", contexts.size());
  std::vector<at::Tensor> parts =
      o.context_dims.empty() ? project_self(x) : project_contexts(x, contexts);
  for (at::Tensor& part : parts) part = heads_first(part);

  AttentionOptions options = attention_options();
  options.causal = o.causal;
  options.window = o.window;
  options.key_lengths = masks.key_lengths;
  options.key_masks = masks.key_masks;
  if (masks.key_masks.size() == 1) options.key_masks.resize(o.order, masks.key_masks[0]);
  options.cu_seqlens = masks.cu_seqlens;
  options.mask = masks.mask;
  const at::TensorList all(parts);
  const auto [out, lse] = attention(all[0], all.slice(1, o.order), all.slice(1 + o.order), options);
  const bool masked =
      masks.key_lengths || !masks.key_masks.empty() || masks.cu_seqlens || masks.mask;
  const bool plain =
      o.normalizer == Normalizer::softmax && o.augment.empty() && o.distinct == Distinct::none;
  const bool of_pairs = o.order == 1 && o.window.empty() && plain && !masked && contexts.empty();
  leave_pairs(parts, of_pairs ? std::optional(lse) : std::nullopt);
  return join_heads(out);
}

at::Tensor SimplicialAttentionImpl::forward(const at::Tensor& x, LayerCache& cache) {
  const auto& o = options_;
  require_cacheable();
  auto* const held = dynamic_cast<KeyValueCache*>(&cache);
  TORCH_CHECK(held != nullptr, "[SimplicialAttention] cache: expected a key/value cache");
  require(o.dropout == 0 || !is_training(),
          "[SimplicialAttention] dropout: expected evaluation mode with a cache; call eval()");
  const std::vector<at::Tensor> parts = heads_of(x, cache.position());
  leave_pairs(parts);
  const at::TensorList all(parts);
  const at::Tensor out =
      held->attend(all[0], all.slice(1, o.order), all.slice(1 + o.order), attention_options()).out;
  return join_heads(out);
}

at::Tensor SimplicialAttentionImpl::forward_selected(const at::Tensor& x,
                                                     const SelectedTokens& tokens) {
  const auto& o = options_;
  require(o.context_dims.empty(), "[SimplicialAttention] positions: not with contexts");
  check_input(x);
  detail::check_selected(tokens, x);
  const std::vector<at::Tensor> parts = heads_of(x, 0, tokens.positions);
  AttentionOptions options = attention_options();
  options.causal = o.causal;
  options.key_lengths = tokens.key_lengths;
  options.mask = detail::induced_mask(tokens, o.window, o.order);
  const at::TensorList all(parts);
  const at::Tensor out =
      attention(all[0], all.slice(1, o.order), all.slice(1 + o.order), options).out;
  return join_heads(out);
}

std::vector<int64_t> SimplicialAttentionImpl::cache_window(int64_t unbounded) const {
  const auto& o = options_;
  require_cacheable();
  std::vector<int64_t> window(o.order, unbounded);
  for (int64_t m = 0; m < o.order && !o.window.empty(); ++m) {
    const int64_t left = o.window[o.window.size() == 1 ? 0 : m].left;
    if (left >= 0) window[m] = left;
  }
  return window;
}

std::shared_ptr<LayerCache> SimplicialAttentionImpl::make_cache(int64_t unbounded) const {
  return std::make_shared<KeyValueCache>(cache_window(unbounded));
}

}  // namespace nsimplex
