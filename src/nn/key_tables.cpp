// Makes, joins and masks the tables of keys per query of layers that list their tuples.

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "nn/attention_layer.h"

namespace nsimplex::detail {

using at::Tensor;
using std::nullopt;

namespace {

bool is_whole(const Tensor& tensor) {
  return tensor.scalar_type() == at::kLong || tensor.scalar_type() == at::kInt;
}

bool is_csr(const Tensor& tensor) { return tensor.layout() == at::kSparseCsr; }

bool is_list_of_edges(const Tensor& adjacency) {
  return !is_csr(adjacency) && adjacency.scalar_type() == at::kLong;
}

void check_graph(const Tensor& adjacency, const std::string& at) {
  const auto sizes = adjacency.sizes();
  bool fits;
  if (is_csr(adjacency)) {
    fits = sizes.size() == 2 && sizes[0] == sizes[1];
  } else if (adjacency.scalar_type() == at::kBool) {
    fits = (sizes.size() == 2 || sizes.size() == 3) && sizes[sizes.size() - 2] == sizes.back();
  } else {
    fits = adjacency.scalar_type() == at::kLong && sizes.size() == 2 && sizes[1] == 2;
  }
  TORCH_CHECK_VALUE(fits, at,
                    "adjacency: expected bool [T, T] or [B, T, T], sparse CSR [T, T] or edges "
                    "int64 [E, 2], got ",
                    adjacency.scalar_type(), " of shape ", sizes);
}

// The masks of a layer that lists its tuples or separates: one for all axes.
void check_sparse_masks(const AttentionMasks& masks, const Tensor& x, const Select& select,
                        const std::string& at) {
  const int64_t batch = x.size(0), length = x.size(1);
  const std::string beside = " beside select " + select_name(select);
  TORCH_CHECK_VALUE(!masks.mask, at, "mask: expected none", beside, "; use adjacency");
  TORCH_CHECK_VALUE(masks.pair_masks.empty(), at, "pair_masks: expected none", beside,
                    "; use adjacency");
  if (const auto& lengths = masks.key_lengths) {
    TORCH_CHECK_VALUE(is_whole(*lengths) && lengths->sizes().equals({batch}), at,
                      "key_lengths: expected int64 of shape [", batch, "]", beside, ", got ",
                      lengths->scalar_type(), " of shape ", lengths->sizes());
  }
  if (!masks.key_masks.empty()) {
    const Tensor& mask = masks.key_masks[0];
    TORCH_CHECK_VALUE(masks.key_masks.size() == 1 && mask.scalar_type() == at::kBool &&
                          mask.sizes().equals({batch, length}),
                      at, "key_masks: expected one of bool and shape [", batch, ", ", length, "]",
                      beside, ", got ", masks.key_masks.size(), " of ", mask.scalar_type(),
                      " and shape ", mask.sizes());
  }
  const bool linear = std::holds_alternative<Linear>(select);
  TORCH_CHECK_VALUE(!linear || !masks.cu_seqlens, at, "cu_seqlens: expected none", beside);
  TORCH_CHECK_VALUE(!linear || !masks.adjacency, at, "adjacency: expected none", beside);
  if (const auto& bounds = masks.cu_seqlens) {
    const bool fits = is_whole(*bounds) && bounds->dim() == 1 && bounds->numel() > 0;
    TORCH_CHECK_VALUE(fits, at, "cu_seqlens: expected int64 [documents + 1], got ",
                      bounds->scalar_type(), " of shape ", bounds->sizes());
    const bool rising = (bounds->diff() >= 0).all().item<bool>() &&
                        bounds->select(0, 0).item<int64_t>() == 0 &&
                        bounds->select(0, -1).item<int64_t>() == length;
    TORCH_CHECK_VALUE(rising, at, "cu_seqlens: expected 0 <= .. <= ", length, ", the tokens of x");
  }
  if (masks.adjacency && is_csr(*masks.adjacency) && graph_of(select) == nullptr) {
    const bool alone =
        !std::holds_alternative<Union>(select) && masks.key_masks.empty() && !masks.cu_seqlens;
    TORCH_CHECK_VALUE(
        alone, at,
        "adjacency: expected bool beside key_masks, cu_seqlens or Union, got sparse CSR");
  }
}

}  // namespace

AttentionMasks checked_masks(AttentionMasks masks, const Tensor& x, const Select& select,
                             const std::string& at) {
  const int64_t batch = x.size(0), length = x.size(1);
  if (const auto& positions = masks.positions) {
    TORCH_CHECK_VALUE(
        positions->scalar_type() == at::kLong && positions->sizes().equals({batch, length}), at,
        "positions: expected int64 of shape [", batch, ", ", length, "], got ",
        positions->scalar_type(), " of shape ", positions->sizes());
  }
  if (masks.adjacency) {
    Tensor& adjacency = *masks.adjacency;
    const bool graph = graph_of(select) != nullptr, csr = is_csr(adjacency);
    if (graph || csr) check_graph(adjacency, at);
    if (!graph || !is_list_of_edges(adjacency)) {
      const auto sizes = adjacency.sizes();
      const bool square = sizes.size() >= 2 && sizes.size() <= 3 &&
                          sizes[sizes.size() - 2] == length && sizes.back() == length;
      const bool fits = (csr || adjacency.scalar_type() == at::kBool) && square &&
                        (sizes.size() == 2 || sizes[0] == 1 || sizes[0] == batch) &&
                        (!csr || !std::holds_alternative<std::monostate>(select));
      TORCH_CHECK_VALUE(fits, at, "adjacency: expected bool of shape [", length, ", ", length,
                        "] or [", batch, ", ", length, ", ", length, "], got ",
                        adjacency.scalar_type(), " of shape ", sizes);
      if (!graph && !csr && sizes.size() == 2) adjacency = adjacency.unsqueeze(0);
    }
  }
  if (!std::holds_alternative<std::monostate>(select)) check_sparse_masks(masks, x, select, at);
  return masks;
}

bool restricts(const AttentionMasks& masks) {
  return masks.key_lengths || !masks.key_masks.empty() || masks.cu_seqlens || masks.mask ||
         !masks.pair_masks.empty() || masks.adjacency;
}

namespace {

// What windows around positions, and adjacency, admit on an axis: bool [B, T, T], or absent.
std::optional<Tensor> induced_pairs(const AttentionMasks& masks, const Window& sees) {
  std::optional<Tensor> pairs = masks.adjacency;
  if (!masks.positions) return pairs;
  const auto keep = [&](const Tensor& inside) { pairs = pairs ? *pairs & inside : inside; };
  const Tensor distance = masks.positions->unsqueeze(1) - masks.positions->unsqueeze(2);  // j - i
  if (sees.left >= 0) keep(distance > -sees.left);
  if (sees.right >= 0) keep(distance <= sees.right);
  return pairs;
}

}  // namespace

std::vector<Tensor> pair_masks_of(const AttentionMasks& masks, const std::vector<Window>& window,
                                  int64_t order) {
  std::vector<Tensor> result = masks.pair_masks;
  for (int64_t m = 0; m < order; ++m) {
    const Window sees = window.empty() ? Window{} : window[window.size() == 1 ? 0 : m];
    const std::optional<Tensor> pairs = induced_pairs(masks, sees);
    if (!pairs) continue;
    const Tensor admitted = pairs->unsqueeze(1);
    if (result.empty()) result.resize(order, at::ones({1, 1}, admitted.options()));
    if (static_cast<int64_t>(result.size()) != order) break;  // attention() refuses their number
    result[m] = result[m].scalar_type() == at::kBool
                    ? result[m] & admitted
                    : result[m].masked_fill(admitted.logical_not(),
                                            -std::numeric_limits<double>::infinity());
  }
  return result;
}

std::optional<Tensor> kept_keys(const AttentionMasks& masks, int64_t length) {
  std::optional<Tensor> kept;
  if (!masks.key_masks.empty()) kept = masks.key_masks[0];
  if (masks.key_lengths) {
    const Tensor places = at::arange(length, masks.key_lengths->options());
    const Tensor inside = places < masks.key_lengths->unsqueeze(1);
    kept = kept ? *kept & inside : inside;
  }
  return kept;
}

std::pair<Tensor, Tensor> documents_of(const Tensor& cu_seqlens, int64_t length) {
  const Tensor bounds = cu_seqlens.to(at::kLong);
  const Tensor places = at::arange(length, bounds.options());
  const Tensor document = at::searchsorted(bounds, places, false, /*right=*/true) - 1;
  return {document, bounds.index_select(0, document.clamp_min(0))};
}

std::optional<Tensor> turned_positions(const SimplicialAttentionOptions& options,
                                       const AttentionMasks& masks, int64_t length) {
  if (masks.positions || !masks.cu_seqlens || !options.rotary) return masks.positions;
  if (rotary_is_relative(options)) return std::nullopt;
  const Tensor first = documents_of(*masks.cu_seqlens, length).second;
  return at::arange(length, first.options()) - first;
}

Tensor neighbour_table(const Tensor& adjacency, int64_t nodes, bool self_loops) {
  if (!is_list_of_edges(adjacency)) return neighbours(adjacency, self_loops);
  Tensor edges = adjacency;
  if (nodes == 0 && edges.numel() > 0) nodes = edges.max().item<int64_t>() + 1;
  if (edges.numel() > 0) {
    const int64_t low = edges.min().item<int64_t>(), high = edges.max().item<int64_t>();
    TORCH_CHECK_VALUE(low >= 0 && high < nodes, "[Neighbours] adjacency: expected nodes 0 to ",
                      nodes - 1, ", got ", low, " to ", high);
    edges = std::get<0>(at::unique_dim(edges, 0));  // sorted by their first node
  }
  const Tensor degrees = at::bincount(edges.select(1, 0), nullopt, nodes);
  const Tensor rows = at::cat({degrees.new_zeros({1}), degrees.cumsum(0)});
  const Tensor present = at::ones({edges.size(0)}, edges.options().dtype(at::kBool));
  return neighbours(at::sparse_csr_tensor(rows, edges.select(1, 1).contiguous(), present,
                                          {nodes, nodes}, present.options().layout(at::kSparseCsr)),
                    self_loops);
}

Tensor compact_table(const Tensor& table, const Tensor& keep) {
  const int64_t width = table.size(-1);
  const Tensor place = at::arange(width, table.options()).expand_as(keep);
  const Tensor order = std::get<1>(place.masked_fill(keep.logical_not(), width).sort(-1));
  return table.expand_as(keep).masked_fill(keep.logical_not(), -1).gather(-1, order);
}

Tensor induced_table(const Tensor& table, const Tensor& positions,
                     const std::optional<Tensor>& key_lengths) {
  const int64_t batch = positions.size(0), count = positions.size(1), length = table.size(1);
  const Tensor place = at::arange(count, positions.options()).expand({batch, -1});
  Tensor slot = positions;
  if (key_lengths) {  // padding writes to a separate slot
    slot = positions.masked_fill(place >= key_lengths->unsqueeze(1), length);
  }
  const Tensor number = at::full({batch, length + 1}, -1, table.options()).scatter(1, slot, place);
  const Tensor rows = table.expand({batch, -1, -1})
                          .gather(1, positions.unsqueeze(-1).expand({-1, -1, table.size(-1)}));
  const Tensor found = number.gather(1, rows.clamp_min(0).flatten(1)).view_as(rows);
  const Tensor present = found.masked_fill(rows < 0, -1);
  return compact_table(present, present >= 0);
}

Tensor where_table(Tensor table, const Tensor& pairs) {
  const int64_t length = pairs.size(-1);
  table = table.masked_fill(table >= length, -1).expand({pairs.size(0), -1, -1});
  return table.masked_fill(pairs.gather(2, table.clamp_min(0)).logical_not(), -1);
}

namespace {

// The batch of tables that may have 1 instead. It may be 0.
int64_t batch_of(const Tensors& tables) {
  for (const Tensor& table : tables) {
    if (table.size(0) != 1) return table.size(0);
  }
  return 1;
}

}  // namespace

Tensor admissible(const Tensor& table, const Tensor& queries, bool causal,
                  const AttentionMasks& masks) {
  Tensor keep = table >= 0;
  const Tensor keys = table.clamp_min(0);
  if (causal) keep = keep & (table <= queries.unsqueeze(1));
  if (masks.key_lengths) keep = keep & (table < masks.key_lengths->unsqueeze(1).unsqueeze(2));
  if (!masks.key_masks.empty()) {
    const Tensor& mask = masks.key_masks[0];
    const Tensor every = keys.expand({mask.size(0), -1, -1});
    keep = keep & mask.gather(1, every.flatten(1)).view_as(every);
  }
  if (masks.cu_seqlens) {
    const Tensor document = documents_of(*masks.cu_seqlens, queries.numel()).first;
    keep = keep & (document.index_select(0, keys.flatten()).view_as(keys) == document.unsqueeze(1));
  }
  if (masks.adjacency) {
    const Tensor& pairs = *masks.adjacency;
    const int64_t batch = batch_of({pairs, keys});
    keep = keep & pairs.expand({batch, -1, -1}).gather(2, keys.expand({batch, -1, -1}));
  }
  return keep;
}

Tensor united_tables(const Tensors& tables, int64_t length) {
  Tensors all;
  for (const Tensor& table : tables) all.push_back(table.expand({batch_of(tables), -1, -1}));
  const Tensor table = at::cat(all, -1);
  const Tensor outside = (table < 0) | (table >= length);
  Tensor keys = std::get<0>(table.masked_fill(outside, length).sort(-1));
  const Tensor repeated = keys.slice(-1, 1) == keys.slice(-1, 0, -1);
  keys = at::cat({keys.slice(-1, 0, 1), keys.slice(-1, 1).masked_fill(repeated, length)}, -1);
  keys = std::get<0>(keys.sort(-1));
  return keys.masked_fill(keys == length, -1);
}

std::optional<Tensor> pairs_of(const AttentionMasks& masks, int64_t length) {
  std::optional<Tensor> pairs = masks.adjacency;
  const auto keep = [&](const Tensor& admitted) { pairs = pairs ? *pairs & admitted : admitted; };
  if (!masks.key_masks.empty()) keep(masks.key_masks[0].unsqueeze(1).expand({-1, length, -1}));
  if (masks.cu_seqlens) {
    const Tensor document = documents_of(*masks.cu_seqlens, length).first;
    keep((document.unsqueeze(1) == document).unsqueeze(0));
  }
  return pairs;
}

TupleList tuples_of(const Tensors& tables) {
  const int64_t order = std::ssize(tables), batch = batch_of(tables);
  const int64_t queries = tables[0].size(1);
  Tensors axes;
  for (int64_t m = 0; m < order; ++m) {
    std::vector<int64_t> shape(2 + order, 1);
    shape[0] = batch;
    shape[1] = queries;
    shape[2 + m] = tables[m].size(-1);
    axes.push_back(tables[m].expand({batch, -1, -1}).reshape(shape));
  }
  const Tensor tuples = at::stack(at::broadcast_tensors(axes), -1).flatten(2, -2);
  const Tensor valid = (tuples >= 0).all(-1);
  const Tensor counts = valid.sum(-1).flatten();
  const Tensor starts = at::cat({counts.new_zeros({1}), counts.cumsum(0)});
  const Tensor rows = at::arange(batch, counts.options()).unsqueeze(1) * queries;
  const Tensor places = rows + at::arange(queries + 1, counts.options());
  const Tensor offsets = starts.index_select(0, places.flatten()).view_as(places);
  const Tensor indices = tuples.flatten(0, 2).index_select(0, valid.flatten().nonzero().squeeze(1));
  return {indices, offsets.unsqueeze(1)};
}

}  // namespace nsimplex::detail
