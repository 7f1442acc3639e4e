// Computes the tuples that an attention layer selects: chosen keys, neighbours, separable sums.

#include <ATen/ATen.h>
#include <nsimplex/sparse_layers.h>

#include <algorithm>
#include <cmath>

#include "nn/attention_layer.h"
#include "support/infinity.h"
#include "support/require.h"

// How an attention layer computes the tuples that its option `select` names.
namespace nsimplex {
namespace {

using at::Tensor;

// The table without the rows of padding, from which an indexer learns nothing.
Tensor of_tokens(const Tensor& table, const AttentionMasks& masks) {
  const auto kept = detail::kept_keys(masks, table.size(1));
  return kept ? table.masked_fill(kept->logical_not().unsqueeze(-1), -1) : table;
}

// The pairs among which an indexer chooses, besides causality and key_lengths.
std::optional<Tensor> scored_pairs(AttentionMasks masks, const Select& select, int64_t length) {
  if (detail::graph_of(select)) masks.adjacency.reset();  // then it is the graph
  const bool sparse = masks.adjacency && masks.adjacency->layout() == at::kSparseCsr;
  return sparse ? masks.adjacency : detail::pairs_of(masks, length);
}

// The parts with the lse of softmax scores over the admissible keys, as topk_keys() computes it of
// the same masks. indexer_loss() knows no masks, so without it padding and other documents would
// count. `pairs` is bool [1 or B, T, T] or sparse CSR.
IndexParts normalised(IndexParts parts, bool causal, const std::optional<Tensor>& key_lengths,
                      const std::optional<Tensor>& pairs) {
  const Tensor value = parts.key.slice(-1, 0, 1).detach();
  Tensor lse;
  if (pairs && pairs->layout() == at::kSparseCsr) {
    const Tensor table = neighbours(*pairs, /*self_loops=*/false);
    const Tensor kept = detail::admissible(table, at::arange(table.size(1), table.options()),
                                           causal, {.key_lengths = key_lengths});
    const Tensor indices = detail::compact_table(table, kept).unsqueeze(1);
    lse = sparse_attention(parts.query, {parts.key}, {value}, indices, std::nullopt,
                           {.pattern = TuplePattern::product})
              .lse;
  } else {
    AttentionOptions options{.causal = causal, .key_lengths = key_lengths};
    if (pairs) options.mask = pairs->unsqueeze(1);
    lse = attention(parts.query, {parts.key}, {value}, options).lse;
  }
  parts.lse = lse.masked_fill(at::isneginf(lse), 0);  // a query without keys
  return parts;
}

}  // namespace

// A separable kernel.

std::vector<Tensor> SimplicialAttentionImpl::features_of(std::vector<Tensor> heads) const {
  const auto& features = std::get<Linear>(options_.select).features;
  for (int64_t p = 0; features && p <= options_.order; ++p) {
    heads[p] = feature_map(heads[p], *features);
  }
  return heads;
}

Tensor SimplicialAttentionImpl::attend_linearly(const Tensor& x, const AttentionMasks& masks) {
  TORCH_CHECK_VALUE(!masks.positions || options_.window.empty(), at_,
                    "positions: not with a window beside select Linear");
  std::vector<Tensor> parts = heads_of(x, 0, masks.positions);
  leave_pairs(parts);
  parts = features_of(std::move(parts));
  if (const auto kept = detail::kept_keys(masks, x.size(1))) {
    const Tensor real = kept->unsqueeze(1).unsqueeze(-1);
    for (int64_t m = 1; m <= options_.order; ++m) {  // a key without features has no weight
      parts[m] = parts[m] * real.to(parts[m].scalar_type());
    }
  }
  const SeparableOptions separable{.causal = options_.causal, .window = options_.window};
  const at::TensorList all(parts);
  return join_heads(separable_attention(all[0], all.slice(1, options_.order),
                                        all.slice(1 + options_.order), separable)
                        .out);
}

// Chosen keys.

std::optional<IndexParts> SimplicialAttentionImpl::index_of(
    const Tensor& x, int64_t first_position, const std::optional<Tensor>& positions) const {
  if (!indexer_) return std::nullopt;
  std::optional<ReusedPairs> pairs;
  if (const auto source = source_.lock()) pairs = source->pairs();
  return indexer_->project(x.detach(), pairs, first_position, positions);
}

// The keys that the indexer chooses for the last queries, best first.
Tensor SimplicialAttentionImpl::choose(const IndexParts& index, const AttentionMasks& masks) const {
  const at::NoGradGuard no_grad;
  const auto* path = std::get_if<Path>(&options_.select);
  const TopK* const best = detail::top_k(options_.select);
  const int64_t keys = path ? path->k : *std::max_element(best->k.begin(), best->k.end());
  const TopkOptions topk{.weights = index.weights,
                         .scores = index_scores_,
                         .causal = options_.causal,
                         .lse = index.lse,
                         .key_lengths = masks.key_lengths,
                         .adjacency = scored_pairs(masks, options_.select, index.key.size(2))};
  return topk_keys(index.query, index.key, keys, topk).indices;
}

// The table of neighbours of the tokens of this call.
Tensor SimplicialAttentionImpl::graph_table(const Neighbours& part, const AttentionMasks& masks,
                                            int64_t length) const {
  if (masks.adjacency) return detail::neighbour_table(*masks.adjacency, length, part.self_loops);
  TORCH_CHECK_VALUE(graph_.defined(), at_,
                    "adjacency: expected the graph of select Neighbours, got none");
  const Tensor table = graph_.to(output_->weight.device());
  if (masks.positions) return detail::induced_table(table, *masks.positions, masks.key_lengths);
  TORCH_CHECK_VALUE(table.size(1) == length, at_, "x: expected the ", table.size(1),
                    " tokens of the graph of select, got ", length);
  return table;
}

// The admissible keys of a part that needs no scores.
Tensor SimplicialAttentionImpl::fixed_table(
    const std::variant<Window, Sinks, Neighbours, TopK>& part, const Tensor& queries,
    int64_t length, const AttentionMasks& given) const {
  AttentionMasks masks = given;
  if (detail::graph_of(options_.select)) masks.adjacency.reset();  // then it is the graph
  Tensor table;
  if (const auto* graph = std::get_if<Neighbours>(&part)) {
    table = graph_table(*graph, given, length);
  } else if (const auto* window = std::get_if<Window>(&part)) {
    const int64_t left = std::min(window->left, length);  // further keys do not exist
    const int64_t right = options_.causal ? 0 : std::min(window->right, length);
    const Tensor around = at::arange(1 - left, right + 1, queries.options());
    table = (queries.unsqueeze(1) + around).unsqueeze(0);
    if (masks.positions) {  // tokens near each other here may be far apart in the sequence
      const Tensor distance = masks.positions->unsqueeze(1) - masks.positions->unsqueeze(2);
      table = detail::where_table(table, (distance > -window->left) & (distance <= window->right));
    }
  } else {
    const int64_t count = std::min(std::get<Sinks>(part).count, length);
    Tensor first = at::zeros_like(queries);
    if (masks.cu_seqlens) first = detail::documents_of(*masks.cu_seqlens, length).second;
    table = (first.unsqueeze(1) + at::arange(count, queries.options())).unsqueeze(0);
    if (masks.positions) {
      const Tensor inside = (*masks.positions < count).unsqueeze(1);
      table = detail::where_table(table, inside.expand({-1, length, -1}));
    }
  }
  table = table.masked_fill(table >= length, -1);
  if (!options_.causal && !detail::restricts(masks)) return table;
  return detail::compact_table(table, detail::admissible(table, queries, options_.causal, masks));
}

// The keys of every query: one table for all axes, or one per axis.
std::vector<Tensor> SimplicialAttentionImpl::tables_of(const std::optional<IndexParts>& index,
                                                       const Tensor& queries, int64_t length,
                                                       const AttentionMasks& masks) const {
  std::vector<Tensor> chosen;
  if (index) {
    chosen = {choose(*index, masks)};
    if (const TopK* best = detail::top_k(options_.select); best && best->k.size() > 1) {
      const Tensor table = chosen[0];
      chosen.clear();
      for (const int64_t k : best->k) chosen.push_back(table.slice(-1, 0, k));
    }
  }
  const auto* const graph = std::get_if<Neighbours>(&options_.select);
  if (graph) return {fixed_table(*graph, queries, length, masks)};
  const auto* const parts = std::get_if<Union>(&options_.select);
  if (parts == nullptr) return chosen;
  std::vector<Tensor> fixed, united;
  for (const auto& part : parts->parts) {
    if (!std::holds_alternative<TopK>(part)) {
      fixed.push_back(fixed_table(part, queries, length, masks));
    }
  }
  if (chosen.empty()) return {detail::united_tables(fixed, length)};
  for (const Tensor& table : chosen) {
    std::vector<Tensor> all = fixed;
    all.push_back(table);
    united.push_back(detail::united_tables(all, length));
  }
  return united;
}

// The indexer's loss, over all admissible keys if none are chosen.
Tensor SimplicialAttentionImpl::alignment_loss(const std::optional<IndexParts>& index,
                                               const std::vector<Tensor>& heads,
                                               const std::optional<Tensor>& chosen, bool path,
                                               const AttentionMasks& masks) const {
  if (!index || !at::GradMode::is_enabled() || loss_weight_ <= 0) return {};
  IndexParts parts = *index;
  if (index_scores_ == IndexScores::softmax && detail::restricts(masks)) {
    const auto pairs = scored_pairs(masks, options_.select, parts.key.size(2));
    parts = normalised(std::move(parts), options_.causal, masks.key_lengths, pairs);
  }
  const IndexerLossOptions loss{.weights = parts.weights,
                                .scores = index_scores_,
                                .causal = options_.causal,
                                .lse = parts.lse,
                                .indices = chosen,
                                .path = path,
                                .form = options_.form,
                                .attention_scale = scale()};
  const at::TensorList all(heads);
  return loss_weight_ *
         indexer_loss(parts.query, parts.key, all[0], all.slice(1, options_.order), loss);
}

// out, and lse without the sink.
AttentionOutput SimplicialAttentionImpl::attend_to_tables(const std::vector<Tensor>& heads,
                                                          const std::vector<Tensor>& tables) const {
  SparseAttentionOptions sparse{.form = options_.form,
                                .reduce = detail::tuple_reduce(options_),
                                .reducer_weights = reducer_,
                                .scale = scale()};
  Tensor indices = tables[0].unsqueeze(1);
  std::optional<Tensor> offsets;
  sparse.pattern =
      std::holds_alternative<Path>(options_.select) ? TuplePattern::path : TuplePattern::product;
  if (tables.size() > 1) {
    const TupleList list = detail::tuples_of(tables);
    indices = list.indices;
    offsets = list.offsets;
    sparse.pattern = TuplePattern::list;
  }
  const at::TensorList all(heads);
  AttentionOutput attended =
      sparse_attention(all[0], all.slice(1, options_.order), all.slice(1 + options_.order), indices,
                       offsets, sparse);
  if (sink_.defined()) {  // a separate tuple in the denominator, with value 0
    const Tensor share = at::sigmoid(attended.lse - sink_.unsqueeze(-1));
    attended.out = attended.out * share.unsqueeze(-1).to(attended.out.scalar_type());
  }
  return attended;
}

Tensor SimplicialAttentionImpl::attend_to_chosen(const Tensor& x, const AttentionMasks& masks) {
  const int64_t length = x.size(1);
  const std::vector<Tensor> parts =
      heads_of(x, 0, detail::turned_positions(options_, masks, length));
  leave_pairs(parts);
  const std::optional<IndexParts> index = index_of(x, 0, masks.positions);
  const Tensor queries = at::arange(length, x.options().dtype(at::kLong));
  if (warms_up_ && index) return warm_up(*index, parts, queries, masks);
  const std::vector<Tensor> tables = tables_of(index, queries, length, masks);
  const Tensor widest =
      *std::max_element(tables.begin(), tables.end(),
                        [](const Tensor& a, const Tensor& b) { return a.size(-1) < b.size(-1); });
  auxiliary_loss_ = alignment_loss(index, parts, of_tokens(widest, masks),
                                   std::holds_alternative<Path>(options_.select), masks);
  const AttentionOutput attended = attend_to_tables(parts, tables);
  if (measures_mass_) {
    const at::NoGradGuard no_grad;
    const Tensor dense = attend_to_window(parts, masks, /*with_sink=*/false).lse;
    const auto kept = detail::kept_keys(masks, length);
    const auto of_rows = [&](const Tensor& lse) {  // rows of padding are no tokens
      return kept ? lse.masked_fill(kept->logical_not().unsqueeze(1), -kInfinity) : lse;
    };
    retained_mass_ = nsimplex::retained_mass(of_rows(attended.lse), of_rows(dense));
  }
  return join_heads(attended.out);
}

Tensor SimplicialAttentionImpl::warm_up(const IndexParts& index, const std::vector<Tensor>& heads,
                                        const Tensor& queries, AttentionMasks masks) {
  require(detail::plain_reduce(options_).has_value(), at_,
          "warm-up: dense attention has no learned reduce");
  std::optional<Tensor> every;
  if (detail::restricts(masks)) {  // the loss takes masks as a table alone
    const Tensor table = queries.expand({1, queries.numel(), -1});
    every = of_tokens(
        detail::compact_table(table, detail::admissible(table, queries, options_.causal, masks)),
        masks);
  }
  auxiliary_loss_ = alignment_loss(index, heads, every, /*path=*/false, masks);
  masks.positions.reset();  // only windows need them, and there are none
  return join_heads(attend_to_window(heads, masks).out);
}

// Layers that are the same under another name.

namespace {

SimplicialAttentionOptions with_selection(SimplicialAttentionOptions options,
                                          const SelectionOptions& selection) {
  constexpr char kAt[] = "[SparseAttention] ";
  require(selection.pattern != TuplePattern::list, kAt, "pattern: expected product or path");
  require(selection.keys >= 1, kAt, "keys: expected at least 1, got ", selection.keys);
  require(selection.loss_weight >= 0 && std::isfinite(selection.loss_weight), kAt,
          "loss_weight: expected 0 or more, got ", selection.loss_weight);
  if (selection.pattern == TuplePattern::path) {
    options.select = Path{selection.keys, selection.indexer, selection.loss_weight};
  } else {
    options.select = TopK{{selection.keys}, selection.indexer, selection.loss_weight};
  }
  return options;
}

SimplicialAttentionOptions with_features(SimplicialAttentionOptions options,
                                         const FeatureOptions& features) {
  options.select = Linear{features};
  return options;
}

}  // namespace

SparseAttentionImpl::SparseAttentionImpl(const SimplicialAttentionOptions& options,
                                         const SelectionOptions& selection)
    : SimplicialAttentionImpl(with_selection(options, selection), "SparseAttention") {}

SeparableAttentionImpl::SeparableAttentionImpl(const SimplicialAttentionOptions& options,
                                               const FeatureOptions& features)
    : SimplicialAttentionImpl(with_features(options, features), "SeparableAttention") {}

}  // namespace nsimplex
