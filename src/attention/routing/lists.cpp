// Tables of keys and graphs as lists of tuples, from plain ATen calls on any device.

#include <ATen/ATen.h>
#include <nsimplex/routing.h>
#include <torch/library.h>

#include <algorithm>
#include <numeric>

#include "attention/routing/tuple_list.h"

namespace nsimplex {
namespace routing {

using at::Tensor;

TupleList list_of_rows(std::vector<Tensor> columns, const Tensor& owner, int64_t batch,
                       int64_t queries) {
  const Tensor counts = at::bincount(owner, {}, batch * queries);
  const Tensor ends = at::constant_pad_nd(counts.cumsum(0), {1, 0});
  // Windows of Tq + 1 numbers: where one batch entry ends the next begins.
  const Tensor offsets =
      queries == 0 ? ends.new_zeros({batch, 1}) : ends.unfold(0, queries + 1, queries).contiguous();
  return {at::stack(columns, 1), offsets.unsqueeze(1)};
}

namespace {

// Rows of any number of keys: row r has items[begin[r]], .., items[begin[r + 1] - 1].
struct Ragged {
  Tensor begin, items;

  explicit Ragged(const Tensor& table) {
    const Tensor keep = table >= 0;
    items = table.masked_select(keep);
    begin = at::constant_pad_nd(keep.sum(-1).flatten().cumsum(0), {1, 0});
  }

  // Every item of every given row, in order: (place of its row in `rows`, item).
  std::pair<Tensor, Tensor> expand(const Tensor& rows) const {
    const Tensor first = begin.index_select(0, rows);
    const Tensor counts = begin.index_select(0, rows + 1) - first;
    const Tensor parent = at::repeat_interleave(counts);
    const Tensor before = counts.cumsum(0) - counts;
    const Tensor place =
        at::arange(parent.size(0), parent.options()) + (first - before).index_select(0, parent);
    return {parent, items.index_select(0, place)};
  }
};

void check_table(const char* function, const Tensor& table, int64_t order, int64_t most) {
  TORCH_CHECK_VALUE(table.dim() == 3, "[", function, "] table: expected shape [B, T, k], got ",
                    table.sizes());
  TORCH_CHECK_TYPE(table.scalar_type() == at::kLong, "[", function, "] table: expected int64, got ",
                   table.scalar_type());
  TORCH_CHECK_VALUE(order >= 1 && order <= kernels::kMaxOrder, "[", function,
                    "] order: expected 1 to ", kernels::kMaxOrder, ", got ", order);
  if (table.numel() == 0) return;
  const int64_t high = table.max().item<int64_t>(), low = table.min().item<int64_t>();
  TORCH_CHECK_VALUE(low >= -1 && (most < 0 || high <= most), "[", function,
                    "] table: expected keys from 0 ", most < 0 ? "on" : "to ",
                    most < 0 ? "" : std::to_string(most), ", or -1 for none, got ", low, " to ",
                    high);
}

// Grows tuples key by key. `next_row` gives the row of the table that continues a tuple, from the
// places of its query and its last key.
template <class NextRow>
TupleList grow(const Tensor& table, const Tensor& first_rows, int64_t order, int64_t queries,
               NextRow&& next_row) {
  const Ragged ragged(table);
  Tensor owner = at::arange(first_rows.size(0), first_rows.options()), rows = first_rows;
  std::vector<Tensor> columns;
  for (int64_t m = 0; m < order; ++m) {
    const auto [parent, item] = ragged.expand(rows);
    for (Tensor& column : columns) column = column.index_select(0, parent);
    columns.push_back(item);
    owner = owner.index_select(0, parent);
    if (m + 1 < order) rows = next_row(owner, item);
  }
  return list_of_rows(std::move(columns), owner, table.size(0), queries);
}

std::tuple<Tensor, Tensor> product(const Tensor& table, int64_t order) {
  check_table("product_list", table, order, -1);
  const Tensor rows = at::arange(table.size(0) * table.size(1), table.options());
  const TupleList list = grow(table, rows, order, table.size(1),
                              [&](const Tensor& owner, const Tensor&) { return owner; });
  return {list.indices, list.offsets};
}

std::tuple<Tensor, Tensor> path(const Tensor& table, int64_t order, int64_t queries) {
  const int64_t batch = table.dim() == 3 ? table.size(0) : 0;
  const int64_t length = table.dim() == 3 ? table.size(1) : 0;
  check_table("path_list", table, order, length - 1);
  if (queries < 0) queries = length;
  TORCH_CHECK_VALUE(queries <= length, "[path_list] queries: expected at most the table's ", length,
                    " rows, got ", queries);
  const Tensor batch_begin = at::arange(batch, table.options()) * length;
  const Tensor last = at::arange(length - queries, length, table.options());
  const Tensor rows = (batch_begin.unsqueeze(1) + last).flatten();
  const Tensor entry_begin = batch_begin.unsqueeze(1).expand({batch, queries}).flatten();
  const TupleList list =
      grow(table, rows, order, queries, [&](const Tensor& owner, const Tensor& key) {
        return entry_begin.index_select(0, owner) + key;
      });
  return {list.indices, list.offsets};
}

std::tuple<Tensor, Tensor> hyperedges(const Tensor& edges, int64_t nodes, bool permute) {
  TORCH_CHECK_VALUE(edges.dim() == 2 && edges.size(1) >= 2 && edges.size(1) <= kernels::kMaxOrder,
                    "[hyperedge_list] hyperedges: expected shape [E, N + 1] with N from 1 to ",
                    kernels::kMaxOrder - 1, ", got ", edges.sizes());
  TORCH_CHECK_TYPE(edges.scalar_type() == at::kLong,
                   "[hyperedge_list] hyperedges: expected int64, got ", edges.scalar_type());
  TORCH_CHECK_VALUE(nodes >= 0, "[hyperedge_list] nodes: expected at least 0, got ", nodes);
  if (edges.numel() > 0) {
    const int64_t low = edges.min().item<int64_t>(), high = edges.max().item<int64_t>();
    TORCH_CHECK_VALUE(low >= 0 && high < nodes, "[hyperedge_list] hyperedges: expected nodes 0 to ",
                      nodes - 1, ", got ", low, " to ", high);
  }
  std::vector<int64_t> order(edges.size(1));
  std::iota(order.begin(), order.end(), 0);
  std::vector<Tensor> all;
  do {
    all.push_back(edges.index_select(1, at::tensor(order, edges.options())));
  } while (permute && std::next_permutation(order.begin(), order.end()));
  // Sorted by query, each row once.
  const Tensor rows = std::get<0>(at::unique_dim(at::cat(all), 0));
  std::vector<Tensor> columns = rows.unbind(1);
  const Tensor owner = columns.front();
  columns.erase(columns.begin());
  const TupleList list = list_of_rows(std::move(columns), owner, 1, nodes);
  return {list.indices, list.offsets};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("product_list(Tensor table, int order) -> (Tensor indices, Tensor offsets)");
  m.def("path_list(Tensor table, int order, int queries=-1) -> (Tensor indices, Tensor offsets)");
  m.def(
      "hyperedge_list(Tensor hyperedges, int nodes, *, bool permute=True) -> (Tensor indices, "
      "Tensor offsets)");
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("product_list", TORCH_FN(product));
  m.impl("path_list", TORCH_FN(path));
  m.impl("hyperedge_list", TORCH_FN(hyperedges));
}

}  // namespace
}  // namespace routing

TupleList product_list(const at::Tensor& table, int64_t order) {
  auto [indices, offsets] = routing::product(table, order);
  return {std::move(indices), std::move(offsets)};
}

TupleList path_list(const at::Tensor& table, int64_t order, int64_t queries) {
  auto [indices, offsets] = routing::path(table, order, queries);
  return {std::move(indices), std::move(offsets)};
}

TupleList hyperedge_list(const at::Tensor& hyperedges, int64_t nodes, bool permute) {
  auto [indices, offsets] = routing::hyperedges(hyperedges, nodes, permute);
  return {std::move(indices), std::move(offsets)};
}

}  // namespace nsimplex
