// Declares the parts of the attention layer: checks of options and masks, and tables of keys.

#pragma once

#include <nsimplex/layers.h>

#include <string>

/// Parts of the attention layer: checks of its options and masks, and tables of keys per query,
/// int64 [1 or B, Tq, k] with -1 after the last key of a row.
namespace nsimplex::detail {

using Tensors = std::vector<at::Tensor>;
using UnionPart = decltype(Union::parts)::value_type;

/// Checks the options of a layer and fills in the derived ones. `at` is "[NAME] ". Throws
/// InputError.
SimplicialAttentionOptions complete(SimplicialAttentionOptions options, const std::string& at);

/// "TopK", ..: the name of a selection; empty for std::monostate.
std::string select_name(const Select& select);

/// The part of a selection that is a TopK (or Neighbours), or null.
const TopK* top_k(const Select& select);
const Neighbours* graph_of(const Select& select);

/// Whether the tuples are those of keys per query, which are listed.
bool chooses_keys(const Select& select);

/// Whether `reduce` is one of those that a dense layer has, and which.
std::optional<Reduce> plain_reduce(const SimplicialAttentionOptions& options);
/// The same for chosen tuples.
TupleReduce tuple_reduce(const SimplicialAttentionOptions& options);

/// Checks masks of tokens x [B, T, C]. Beside a selection they hold for all axes together. An
/// adjacency of pairs becomes [1 or B, T, T]. Throws c10::ValueError.
AttentionMasks checked_masks(AttentionMasks masks, const at::Tensor& x, const Select& select,
                             const std::string& at);

/// Whether masks other than positions are given.
bool restricts(const AttentionMasks& masks);

/// The pair_masks of a call: those given, restricted to windows around `positions` and to what
/// `adjacency` admits, on every axis. Empty if everything is admissible.
std::vector<at::Tensor> pair_masks_of(const AttentionMasks& masks,
                                      const std::vector<Window>& window, int64_t order);

/// bool [B, T]: the tokens that are not padding; absent: all.
std::optional<at::Tensor> kept_keys(const AttentionMasks& masks, int64_t length);

/// The number of each token's document [T], and the first token of it [T].
std::pair<at::Tensor, at::Tensor> documents_of(const at::Tensor& cu_seqlens, int64_t length);

/// Whether the logits of turned queries and keys depend on differences of positions alone.
inline bool rotary_is_relative(const SimplicialAttentionOptions& options) {
  return options.order == 1 || options.form == Form::determinant;
}

/// The positions by which rotary turns queries and keys; absent: their places. Packed documents
/// count from their own first token if the logits depend on more than differences of positions.
std::optional<at::Tensor> turned_positions(const SimplicialAttentionOptions& options,
                                           const AttentionMasks& masks, int64_t length);

/// The table of a graph in one of the forms of Neighbours; nodes 0: the largest node and 1.
at::Tensor neighbour_table(const at::Tensor& adjacency, int64_t nodes, bool self_loops);

/// The rows and keys of a table of T tokens that belong to the tokens at `positions` [B, K],
/// numbered by their place among these.
at::Tensor induced_table(const at::Tensor& table, const at::Tensor& positions,
                         const std::optional<at::Tensor>& key_lengths);

/// The entries of a table that `pairs`, bool [B, T, T], admits.
at::Tensor where_table(at::Tensor table, const at::Tensor& pairs);

/// The kept entries of each row in their order, -1 after the last.
at::Tensor compact_table(const at::Tensor& table, const at::Tensor& keep);

/// Which entries of a table the masks admit. Queries [t] are places among the keys.
at::Tensor admissible(const at::Tensor& table, const at::Tensor& queries, bool causal,
                      const AttentionMasks& masks);

/// The keys of all tables, each once, ascending.
at::Tensor united_tables(const Tensors& tables, int64_t length);

/// bool [1 or B, T, T]: pairs that key masks, documents and adjacency admit; absent: all.
std::optional<at::Tensor> pairs_of(const AttentionMasks& masks, int64_t length);

/// All tuples of one table per axis.
TupleList tuples_of(const Tensors& tables);

}  // namespace nsimplex::detail
