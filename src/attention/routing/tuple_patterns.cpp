// Tables of keys and graphs as lists of tuples, and tables of the neighbours of a graph, by ATen
// calls on any device.

#include <ATen/ATen.h>
#include <nsimplex/routing.h>
#include <torch/library.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "attention/routing/selection.h"
#include "support/as_function.h"
#include "support/size_limits.h"

namespace nsimplex {
namespace routing {

using at::Tensor;

TupleList list_of_rows(std::vector<Tensor> columns, const Tensor& owner, int64_t batch,
                       int64_t queries) {
  const Tensor counts = at::bincount(owner, {}, batch * queries);
  const Tensor ends = at::constant_pad_nd(counts.cumsum(0), {1, 0});
  // Windows of Tq + 1 numbers: the end of one batch entry is the beginning of the next.
  const Tensor offsets = batch * queries == 0 ? ends.new_zeros({batch, queries + 1})
                                              : ends.unfold(0, queries + 1, queries).contiguous();
  return {at::stack(columns, 1), offsets.unsqueeze(1)};
}

namespace {

// Rows of different lengths: row r has items[begin[r]], .., items[begin[r + 1] - 1].
struct Ragged {
  Tensor begin, items;

  explicit Ragged(const Tensor& table) {
    const Tensor keep = table >= 0;
    items = table.masked_select(keep);
    begin = at::constant_pad_nd(keep.sum(-1).flatten().cumsum(0), {1, 0});
  }

  // Every item of every given row, in order: (place of its row in `rows`, item).
  std::pair<Tensor, Tensor> expand(const char* function, const Tensor& rows) const {
    const Tensor first = begin.index_select(0, rows);
    const Tensor counts = begin.index_select(0, rows + 1) - first;
    as_function(function, [&] { require_room("table", {counts.sum().item<int64_t>()}); });
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

// Extends tuples key by key. `next_row` returns the row of the table that continues a tuple, from
// the positions of its query and its last key.
template <class NextRow>
TupleList grow(const char* function, const Tensor& table, const Tensor& first_rows, int64_t order,
               int64_t queries, NextRow&& next_row) {
  const Ragged ragged(table);
  Tensor owner = at::arange(first_rows.size(0), first_rows.options()), rows = first_rows;
  std::vector<Tensor> columns;
  for (int64_t m = 0; m < order; ++m) {
    const auto [parent, item] = ragged.expand(function, rows);
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
  const TupleList list = grow("product_list", table, rows, order, table.size(1),
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
      grow("path_list", table, rows, order, queries, [&](const Tensor& owner, const Tensor& key) {
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
  as_function("hyperedge_list", [&] { require_room("nodes", {nodes}); });
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

namespace routing {
namespace {

using at::Tensor;

// The table of pairs (row, column), given as row * columns + column in any order and with
// repetitions. Rows are numbered through all batch entries.
Tensor table_of_pairs(const Tensor& pairs, int64_t batch, int64_t rows, int64_t columns) {
  const Tensor sorted = std::get<0>(at::unique_consecutive(std::get<0>(pairs.sort())));
  const Tensor row = sorted.div(std::max<int64_t>(columns, 1), "floor");
  const Tensor degrees = at::bincount(row, {}, batch * rows);
  // A table has at least one column. For a graph without edges, it contains -1.
  const int64_t width =
      degrees.numel() == 0 ? 1 : std::max<int64_t>(degrees.max().item<int64_t>(), 1);
  as_function("neighbours", [&] { require_room("adjacency", {batch, rows, width}); });
  const Tensor before = degrees.cumsum(0) - degrees;
  const Tensor place = at::arange(row.size(0), row.options()) - before.index_select(0, row);
  const Tensor table = at::full({batch * rows, width}, -1, row.options());
  table.index_put_({row, place}, sorted.remainder(std::max<int64_t>(columns, 1)));
  return table.view({batch, rows, width});
}

Tensor with_self_loops(const Tensor& pairs, int64_t batch, int64_t nodes) {
  const Tensor rows = at::arange(batch * nodes, pairs.options());
  return at::cat({pairs, rows * nodes + rows.remainder(std::max<int64_t>(nodes, 1))});
}

void check_square(bool self_loops, int64_t rows, int64_t columns) {
  TORCH_CHECK_VALUE(!self_loops || rows == columns,
                    "[neighbours] adjacency: expected a square matrix for self_loops, got ", rows,
                    " x ", columns);
}

Tensor of_flags(const Tensor& adjacency, bool self_loops) {
  TORCH_CHECK_TYPE(adjacency.scalar_type() == at::kBool,
                   "[neighbours] adjacency: expected bool or a sparse CSR tensor, got ",
                   adjacency.scalar_type());
  TORCH_CHECK_VALUE(adjacency.dim() == 2 || adjacency.dim() == 3,
                    "[neighbours] adjacency: expected shape [T, T] or [B, T, T], got ",
                    adjacency.sizes());
  const int64_t rows = adjacency.size(-2), columns = adjacency.size(-1);
  const int64_t batch = adjacency.dim() == 3 ? adjacency.size(0) : 1;
  check_square(self_loops, rows, columns);
  Tensor pairs = adjacency.flatten().nonzero().squeeze(1);
  if (self_loops) pairs = with_self_loops(pairs, batch, rows);
  return table_of_pairs(pairs, batch, rows, columns);
}

Tensor of_csr(const Tensor& crow, const Tensor& col, int64_t columns, bool self_loops) {
  TORCH_CHECK_VALUE(crow.dim() == 1 && col.dim() == 1 && crow.size(0) >= 1,
                    "[neighbours] adjacency: expected one matrix [T, T], got row offsets ",
                    crow.sizes(), " and columns ", col.sizes());
  for (const Tensor* each : {&crow, &col}) {
    TORCH_CHECK_TYPE(each->scalar_type() == at::kLong || each->scalar_type() == at::kInt,
                     "[neighbours] adjacency: expected int64 or int32 indices, got ",
                     each->scalar_type());
  }
  const Tensor offsets = crow.to(at::kLong), places = col.to(at::kLong);
  const int64_t rows = crow.size(0) - 1, count = col.size(0);
  const Tensor degrees = offsets.diff();
  TORCH_CHECK_VALUE(offsets[0].item<int64_t>() == 0 && offsets[rows].item<int64_t>() == count &&
                        !(degrees < 0).any().item<bool>(),
                    "[neighbours] adjacency: expected row offsets that rise from 0 to ", count);
  if (count > 0) {
    const int64_t low = places.min().item<int64_t>(), high = places.max().item<int64_t>();
    TORCH_CHECK_VALUE(low >= 0 && high < columns, "[neighbours] adjacency: expected columns 0 to ",
                      columns - 1, ", got ", low, " to ", high);
  }
  check_square(self_loops, rows, columns);
  TORCH_CHECK_VALUE(saturating_product(rows, columns) < std::numeric_limits<int64_t>::max(),
                    "[neighbours] adjacency: expected fewer than 2^63 places, got ", rows, " x ",
                    columns);
  Tensor pairs = at::repeat_interleave(degrees) * columns + places;
  if (self_loops) pairs = with_self_loops(pairs, 1, rows);
  return table_of_pairs(pairs, 1, rows, columns);
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("neighbours(Tensor adjacency, *, bool self_loops=True) -> Tensor");
  m.def("neighbours_csr(Tensor crow, Tensor col, int columns, *, bool self_loops=True) -> Tensor");
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("neighbours", TORCH_FN(of_flags));
  m.impl("neighbours_csr", TORCH_FN(of_csr));
}

}  // namespace
}  // namespace routing

at::Tensor neighbours(const at::Tensor& adjacency, bool self_loops) {
  if (adjacency.layout() != at::kSparseCsr) return routing::of_flags(adjacency, self_loops);
  return routing::of_csr(adjacency.crow_indices(), adjacency.col_indices(), adjacency.size(-1),
                         self_loops);
}

}  // namespace nsimplex
