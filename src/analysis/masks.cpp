// The functions of nsimplex/analysis.h and their operators.

#include <ATen/ATen.h>
#include <nsimplex/analysis.h>
#include <torch/library.h>

#include "analysis/mask_hypergraph.h"
#include "graph/graph_view.h"
#include "support/parallel.h"

namespace nsimplex {

using at::Tensor;
using graph::CheckedBatch;

namespace {

CheckedBatch checked(const TupleBatch& masks, const char* name) {
  CheckedBatch batch(masks, name);
  TORCH_CHECK_VALUE(masks.order() >= 2, "[", name,
                    "] masks: expected tuples of a query and at least one key, got order ",
                    masks.order());
  return batch;
}

}  // namespace

MaskExtent mask_extent(const TupleBatch& masks) {
  const CheckedBatch batch = checked(masks, "mask_extent");
  const graph::TupleView view = batch.view();
  const analysis::MaskHypergraph found = analysis::mask_hypergraph(view);
  const int64_t graphs = view.graphs();
  std::vector<int64_t> eccentricities(view.nodes()), radii(graphs), diameters(graphs);
  const Tensor gaps = at::empty({graphs}, at::kDouble);
  double* gap = gaps.mutable_data_ptr<double>();
  parallel_tasks(graphs, [&](int64_t g, int) {
    const int64_t first = view.node_offsets[g], last = view.node_offsets[g + 1];
    const analysis::Extent extent = analysis::extent_of(found.receivers, first, last);
    std::ranges::copy(extent.eccentricities, eccentricities.begin() + first);
    radii[g] = extent.radius;
    diameters[g] = analysis::extent_of(found.skeleton, first, last).diameter;
    gap[g] = analysis::spectral_gap(found.skeleton, first, last);
  });
  const Tensor loops = at::tensor(at::ArrayRef<uint8_t>(found.loops), at::kByte).to(at::kBool);
  return {graph::to_tensor(std::move(eccentricities)), loops, graph::to_tensor(std::move(radii)),
          graph::to_tensor(std::move(diameters)), gaps};
}

Tensor mask_distances(const TupleBatch& masks) {
  const CheckedBatch batch = checked(masks, "mask_distances");
  const int64_t nodes = batch.view().nodes();
  const analysis::MaskHypergraph found = analysis::mask_hypergraph(batch.view());
  Tensor distances = at::empty({nodes, nodes}, at::kLong);
  int64_t* rows = distances.mutable_data_ptr<int64_t>();
  parallel_tasks(nodes, [&](int64_t node, int) {
    std::ranges::copy(analysis::distances_from(found.receivers, node), rows + node * nodes);
  });
  return distances;
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "mask_extent(Tensor tuples, Tensor tuple_offsets, Tensor node_offsets, str symmetry) -> "
      "(Tensor, Tensor, Tensor, Tensor, Tensor)",
      [](const Tensor& tuples, const Tensor& tuple_offsets, const Tensor& node_offsets,
         std::string_view symmetry) {
        MaskExtent found = mask_extent(
            {tuples, tuple_offsets, node_offsets, graph::parse_symmetry(symmetry, "mask_extent")});
        return std::tuple(found.eccentricities, found.loops, found.radii, found.diameters,
                          found.gaps);
      });
  m.def(
      "mask_distances(Tensor tuples, Tensor tuple_offsets, Tensor node_offsets, str symmetry) -> "
      "Tensor",
      [](const Tensor& tuples, const Tensor& tuple_offsets, const Tensor& node_offsets,
         std::string_view symmetry) {
        return mask_distances({tuples, tuple_offsets, node_offsets,
                               graph::parse_symmetry(symmetry, "mask_distances")});
      });
}

}  // namespace nsimplex
