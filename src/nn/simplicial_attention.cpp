// The N-simplicial attention layer with its projections, head norms and groups of heads.

#include <ATen/ops/empty.h>
#include <ATen/ops/rms_norm.h>
#include <nsimplex/rotary.h>
#include <nsimplex/sparse_layers.h>

#include <algorithm>
#include <cmath>

#include "nn/attention_layer.h"
#include "nn/initialize.h"
#include "support/require.h"

namespace nsimplex {
namespace {

// Far below any norm that is not noise, so normalised heads keep norm 1. It only protects an
// all-zero head.
constexpr double kHeadNormEpsilon = 1e-6;

at::Tensor unit_rms(const at::Tensor& heads) {
  return at::rms_norm(heads, {heads.size(-1)}, std::nullopt, kHeadNormEpsilon);
}

// [B, T, H, D] -> [B, H, T, D] without a copy, and back.
at::Tensor heads_first(const at::Tensor& x) { return x.transpose(1, 2); }

SimplicialAttentionImpl& group_of(torch::nn::ModuleList& groups, size_t index) {
  return groups->at<SimplicialAttentionImpl>(index);
}

}  // namespace

SimplicialAttentionImpl::SimplicialAttentionImpl(const SimplicialAttentionOptions& options)
    : SimplicialAttentionImpl(options, "SimplicialAttention") {}

SimplicialAttentionImpl::SimplicialAttentionImpl(const SimplicialAttentionOptions& options,
                                                 const char* name)
    : at_(c10::str("[", name, "] ")), options_(detail::complete(options, at_)) {
  if (!options_.orders.empty()) {
    make_groups();
  } else {
    make_projections();
    make_indexer();
    make_reducer();
    if (const Neighbours* graph = detail::graph_of(options_.select); graph && graph->adjacency) {
      graph_ = detail::neighbour_table(*graph->adjacency, graph->nodes, graph->self_loops);
    }
  }
  reset_parameters();
}

// One layer for the heads of each order.
void SimplicialAttentionImpl::make_groups() {
  const int64_t shared = options_.heads / options_.kv_heads;
  std::vector<int64_t> orders = options_.orders;
  std::sort(orders.begin(), orders.end());
  groups_ = register_module("groups", torch::nn::ModuleList());
  for (auto first = orders.begin(); first != orders.end();) {
    const auto last = std::upper_bound(first, orders.end(), *first);
    SimplicialAttentionOptions group = options_;
    group.orders.clear();
    group.order = *first;
    group.heads = last - first;
    group.kv_heads = group.heads / shared;
    if (group.window.size() > 1) {
      group.window.erase(group.window.begin(), group.window.end() - group.order);
    }
    std::erase_if(group.augment, [&group](int64_t axis) { return axis >= group.order; });
    const bool fits = detail::rotary_is_relative(group) || group.allow_non_invariant;
    group.rotary = group.rotary && fits;
    groups_->push_back(SimplicialAttention(group));
    first = last;
  }
}

std::vector<std::shared_ptr<SimplicialAttentionImpl>> SimplicialAttentionImpl::groups() const {
  std::vector<std::shared_ptr<SimplicialAttentionImpl>> layers;
  for (size_t i = 0; groups_ && i < groups_->size(); ++i) {
    layers.push_back(groups_->ptr<SimplicialAttentionImpl>(i));
  }
  return layers;
}

void SimplicialAttentionImpl::gather_groups() {
  auxiliary_loss_ = retained_mass_ = at::Tensor();
  pairs_.reset();
  Tensors queries, keys, lse;
  for (const auto& group : groups()) {
    const at::Tensor &loss = group->auxiliary_loss_, &mass = group->retained_mass_;
    if (loss.defined()) auxiliary_loss_ = auxiliary_loss_.defined() ? auxiliary_loss_ + loss : loss;
    if (mass.defined()) {
      const at::Tensor share =
          mass * (static_cast<double>(group->options_.heads) / static_cast<double>(options_.heads));
      retained_mass_ = retained_mass_.defined() ? retained_mass_ + share : share;
    }
    if (!keeps_pairs_ || !group->pairs_) continue;
    queries.push_back(group->pairs_->query);
    keys.push_back(group->pairs_->key);
    if (group->pairs_->lse) lse.push_back(*group->pairs_->lse);
  }
  if (queries.empty()) return;
  pairs_ = ReusedPairs{at::cat(queries, 1), at::cat(keys, 1)};
  if (lse.size() == queries.size()) pairs_->lse = at::cat(lse, 1);
}

bool SimplicialAttentionImpl::has_indexer() const {
  const auto own = groups();
  return indexer_ != nullptr ||
         std::ranges::any_of(own, [](const auto& group) { return group->has_indexer(); });
}

void SimplicialAttentionImpl::set_source(const std::shared_ptr<SimplicialAttentionImpl>& source) {
  source->keep_pairs();
  source_ = source;
  for (const auto& group : groups()) group->source_ = source;
}

void SimplicialAttentionImpl::set_warm_up(bool warms_up) {
  warms_up_ = warms_up;
  for (const auto& group : groups()) group->set_warm_up(warms_up);
}

void SimplicialAttentionImpl::measure_retained_mass(bool measures) {
  measures_mass_ = measures;
  for (const auto& group : groups()) group->measure_retained_mass(measures);
}

void SimplicialAttentionImpl::keep_pairs() {
  keeps_pairs_ = true;
  for (const auto& group : groups()) group->keep_pairs();
}

void SimplicialAttentionImpl::make_projections() {
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
}

void SimplicialAttentionImpl::make_indexer() {
  const TopK* const best = detail::top_k(options_.select);
  const Path* const path = std::get_if<Path>(&options_.select);
  if (best == nullptr && path == nullptr) return;
  IndexerOptions options = best ? best->indexer : path->indexer;
  loss_weight_ = best ? best->loss : path->loss;
  if (options.dim == 0) options.dim = options_.dim;
  if (options.source == IndexSource::reuse) options.learned = loss_weight_ > 0;
  index_scores_ = options.scores;
  indexer_ = register_module("indexer", std::make_shared<IndexerImpl>(options));
}

void SimplicialAttentionImpl::make_reducer() {
  const TupleReduce reduce = detail::tuple_reduce(options_);
  const int64_t k = options_.kv_heads, d = options_.head_dim;
  std::vector<std::vector<int64_t>> shapes;
  if (reduce == TupleReduce::mlp) {
    shapes = {{k, 2 * d, options_.order * d}, {k, 2 * d}, {k, d, 2 * d}, {k, d}};
  } else if (reduce == TupleReduce::mlp_symmetric) {
    shapes = {{k, 2 * d, d}, {k, 2 * d}, {k, 2 * d, 2 * d}, {k, 2 * d}, {k, d, 2 * d}, {k, d}};
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string name = c10::str("reducer_", i % 2 == 0 ? 'w' : 'b', i / 2 + 1);
    reducer_.push_back(register_parameter(name, at::empty(shapes[i])));
  }
}

void SimplicialAttentionImpl::reset_parameters(const Initialization& init) {
  const at::NoGradGuard no_grad;
  if (groups_) {
    for (size_t i = 0; i < groups_->size(); ++i) {  // as rows of one projection of all heads
      auto& group = group_of(groups_, i);
      const double share =
          static_cast<double>(group.options_.heads) / static_cast<double>(options_.heads);
      group.reset_parameters({init.generator, init.residual_gain * std::sqrt(share)});
    }
    return;
  }
  const auto reset = [&init](torch::nn::LinearImpl& projection, double gain) {
    detail::initialize(projection.weight, init.generator, gain);
    if (projection.bias.defined()) projection.bias.zero_();
  };
  if (qkv_) reset(*qkv_, 1.0);
  if (q_) reset(*q_, 1.0);
  for (size_t m = 0; kv_ && m < kv_->size(); ++m) reset(kv_->at<torch::nn::LinearImpl>(m), 1.0);
  reset(*output_, init.residual_gain);
  if (indexer_) indexer_->reset_parameters(init);
  if (sink_.defined()) sink_.zero_();
  for (at::Tensor& weight : reducer_) {
    if (weight.dim() == 3) {
      detail::initialize(weight, init.generator);
    } else {
      weight.zero_();
    }
  }
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
        at_, "contexts[", m, "]: expected shape [", x.size(0), ", T, ", o.context_dims[m],
        "], got ", context.sizes());
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
  TORCH_CHECK(x.dim() == 3 && x.size(2) == options_.dim, at_, "x: expected shape [B, T, ",
              options_.dim, "], got ", x.sizes());
}

Scale SimplicialAttentionImpl::scale() const {
  const auto& o = options_;
  if (const Scale* explicit_scale = std::get_if<Scale>(&o.scale)) return *explicit_scale;
  return std::get<ScalePreset>(o.scale) == ScalePreset::unit
             ? Scale::unit(o.order, o.head_dim, o.head_dim, *detail::plain_reduce(o))
             : Scale::standard(o.head_dim);
}

AttentionOptions SimplicialAttentionImpl::attention_options() const {
  AttentionOptions options;
  options.form = options_.form;
  options.reduce = detail::plain_reduce(options_).value_or(Reduce::product);
  options.scale = scale();
  options.softcap = options_.softcap;
  options.normalizer = options_.normalizer;
  if (sink_.defined()) options.sink = sink_;
  options.distinct = options_.distinct;
  options.augment = options_.augment;
  if (is_training()) options.dropout_p = options_.dropout;
  return options;
}

void SimplicialAttentionImpl::leave_pairs(const std::vector<at::Tensor>& heads,
                                          const std::optional<at::Tensor>& lse) {
  if (!keeps_pairs_) return;
  pairs_ = ReusedPairs{heads[0].detach(), heads[1].detach()};
  if (lse) pairs_->lse = lse->detach();
}

std::vector<at::Tensor> SimplicialAttentionImpl::heads_of(
    const at::Tensor& x, int64_t first_position, const std::optional<at::Tensor>& positions) {
  TORCH_CHECK(!groups_, at_, "orders: expected none, got ", options_.orders.size());
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

at::Tensor SimplicialAttentionImpl::forward(const at::Tensor& x, at::TensorList contexts,
                                            const std::optional<at::Tensor>& key_lengths) {
  return forward_masked(x, {.key_lengths = key_lengths}, contexts);
}

at::Tensor SimplicialAttentionImpl::forward_selected(const at::Tensor& x,
                                                     const SelectedTokens& tokens) {
  return forward_masked(x, {.key_lengths = tokens.key_lengths,
                            .positions = tokens.positions,
                            .adjacency = tokens.adjacency});
}

at::Tensor SimplicialAttentionImpl::forward_masked(const at::Tensor& x, const AttentionMasks& given,
                                                   at::TensorList contexts) {
  const auto& o = options_;
  TORCH_CHECK(contexts.size() == o.context_dims.size(), at_, "contexts: expected ",
              o.context_dims.size(), " tensors, got ", contexts.size());
  check_input(x);
  if (groups_) {
    at::Tensor sum;
    for (size_t i = 0; i < groups_->size(); ++i) {
      const at::Tensor out = group_of(groups_, i).forward_masked(x, given);
      sum = sum.defined() ? sum + out : out;
    }
    gather_groups();
    return sum;
  }
  TORCH_CHECK(contexts.empty() || (!given.positions && !given.adjacency), at_,
              "positions and adjacency: not with contexts");
  const AttentionMasks masks = detail::checked_masks(given, x, o.select, at_);
  if (std::holds_alternative<Linear>(o.select)) return attend_linearly(x, masks);
  if (detail::chooses_keys(o.select)) return attend_to_chosen(x, masks);

  std::vector<at::Tensor> parts =
      contexts.empty() ? project_self(x, 0, detail::turned_positions(o, masks, x.size(1)))
                       : project_contexts(x, contexts);
  for (at::Tensor& part : parts) part = heads_first(part);
  const auto [out, lse] = attend_to_window(parts, masks);
  const bool plain = o.normalizer == Normalizer::softmax && o.augment.empty() && !o.face &&
                     o.distinct == Distinct::none && !o.softcap;
  const bool of_pairs =
      o.order == 1 && o.window.empty() && plain && !detail::restricts(masks) && contexts.empty();
  leave_pairs(parts, of_pairs ? std::optional(lse) : std::nullopt);
  return join_heads(out);
}

AttentionOutput SimplicialAttentionImpl::attend_to_window(const std::vector<at::Tensor>& heads,
                                                          const AttentionMasks& masks,
                                                          bool with_sink) const {
  const auto& o = options_;
  AttentionOptions options = attention_options();
  if (!with_sink) {
    options.normalizer = Normalizer::softmax;
    options.sink.reset();
  }
  options.causal = o.causal;
  if (!masks.positions) options.window = o.window;
  options.key_lengths = masks.key_lengths;
  options.key_masks = masks.key_masks;
  if (masks.key_masks.size() == 1) options.key_masks.resize(o.order, masks.key_masks[0]);
  options.cu_seqlens = masks.cu_seqlens;
  options.mask = masks.mask;
  options.pair_masks = detail::pair_masks_of(masks, o.window, o.order);
  const at::TensorList all(heads);
  const auto call = o.face ? face_attention : attention;
  return call(all[0], all.slice(1, o.order), all.slice(1 + o.order), options);
}

}  // namespace nsimplex
