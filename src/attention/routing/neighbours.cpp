// Tables of a graph's neighbours.

#include <ATen/ATen.h>
#include <nsimplex/routing.h>
#include <torch/library.h>

namespace nsimplex {
namespace routing {
namespace {

using at::Tensor;

// The table of pairs (row, column), given as row * columns + column in any order and repeatedly;
// rows count through all batch entries.
Tensor table_of_pairs(const Tensor& pairs, int64_t batch, int64_t rows, int64_t columns) {
  const Tensor sorted = std::get<0>(at::unique_consecutive(std::get<0>(pairs.sort())));
  const Tensor row = sorted.div(std::max<int64_t>(columns, 1), "floor");
  const Tensor degrees = at::bincount(row, {}, batch * rows);
  // Of a graph without edges, one column of -1: a table is never without columns.
  const int64_t width =
      degrees.numel() == 0 ? 1 : std::max<int64_t>(degrees.max().item<int64_t>(), 1);
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
