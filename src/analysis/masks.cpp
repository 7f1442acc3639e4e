// Distances and spectral gaps of masks, curvatures of graphs and bounds of attention weights, with
// their operators.

#include <ATen/ATen.h>
#include <nsimplex/analysis.h>
#include <torch/library.h>

#include <cmath>
#include <limits>
#include <string>

#include "analysis/mask_hypergraph.h"
#include "graph/adjacency.h"
#include "graph/curvature.h"
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

WeightBounds weight_bounds(const WeightSetting& setting) {
  const std::string at = "[weight_bounds] ";
  const auto at_least_one = [&](const char* name, int64_t value) {
    TORCH_CHECK_VALUE(value >= 1, at, name, ": expected at least 1, got ", value);
  };
  const auto finite = [&](const char* name, double value) {
    TORCH_CHECK_VALUE(value >= 0 && std::isfinite(value), at, name,
                      ": expected a finite number of at least 0, got ", value);
  };
  at_least_one("order", setting.order);
  at_least_one("tuples", setting.tuples);
  finite("radius", setting.radius);
  finite("key_norm", setting.key_norm);
  finite("scale", setting.scale);
  const double logit = setting.scale * std::pow(setting.key_norm * setting.radius,
                                                static_cast<double>(setting.order) + 1);
  if (setting.tuples == 1) return {logit, 1, 1};
  const auto others = static_cast<double>(setting.tuples - 1);
  return {logit, 1 / (1 + others * std::exp(2 * logit)), 1 / (1 + others * std::exp(-2 * logit))};
}

EdgeCurvatures edge_curvatures(const TupleBatch& batch) {
  TORCH_CHECK_VALUE(batch.order() == 2, "[edge_curvatures] batch: expected pairs, got tuples of ",
                    batch.order());
  const CheckedBatch checked(batch, "edge_curvatures");
  const graph::Adjacency neighbours = graph::adjacency_of(checked.view());
  const graph::Rows edges = checked.view().tuples;
  Tensor values = at::empty({3, edges.count}, at::kDouble);
  for (const graph::Curvature kind : graph::kCurvatures) {
    std::ranges::copy(graph::edge_curvatures(edges, neighbours, kind),
                      values.mutable_data_ptr<double>() + static_cast<int64_t>(kind) * edges.count);
  }
  const Tensor& tuples = checked.batch().tuples;
  values.masked_fill_(tuples.select(1, 0) == tuples.select(1, 1),
                      std::numeric_limits<double>::quiet_NaN());
  return {values[0], values[1], values[2]};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "graph_edge_curvatures(Tensor tuples, Tensor tuple_offsets, Tensor node_offsets, str "
      "symmetry) -> (Tensor, Tensor, Tensor)",
      [](const Tensor& tuples, const Tensor& tuple_offsets, const Tensor& node_offsets,
         std::string_view symmetry) {
        EdgeCurvatures found =
            edge_curvatures({tuples, tuple_offsets, node_offsets,
                             graph::parse_symmetry(symmetry, "edge_curvatures")});
        return std::tuple(found.plain, found.augmented, found.balanced);
      });
  m.def(
      "weight_bounds(int order, int tuples, float radius, float key_norm, float scale) -> (float, "
      "float, float)",
      [](int64_t order, int64_t tuples, double radius, double key_norm, double scale) {
        const WeightBounds found = weight_bounds({order, tuples, radius, key_norm, scale});
        return std::tuple(found.logit, found.lower, found.upper);
      });
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
