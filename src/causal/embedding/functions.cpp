// The public functions: tensors to graphs and points, torch's threads to the loops.

#include <ATen/ATen.h>
#include <nsimplex/causal_embedding.h>

#include <chrono>
#include <cmath>

#include "causal/embedding/blank.h"
#include "causal/embedding/embed.h"
#include "causal/embedding/points.h"
#include "causal/embedding/ranking.h"
#include "support/error.h"
#include "support/parallel.h"

namespace nsimplex {

using at::Tensor;

namespace causal {
namespace {

void on_threads(int64_t tasks, const std::function<void(int64_t)>& body) {
  parallel_tasks(tasks, [&](int64_t task, int) { body(task); });
}

SparseGraph to_graph(const char* function, const Tensor& adjacency) {
  TORCH_CHECK_TYPE(at::isFloatingType(adjacency.scalar_type()), "[", function,
                   "] adjacency: expected floating point numbers, got ", adjacency.scalar_type());
  TORCH_CHECK_VALUE(adjacency.is_cpu() && adjacency.dim() == 2 &&
                        adjacency.size(0) == adjacency.size(1) && adjacency.size(0) > 0,
                    "[", function, "] adjacency: expected shape [M, M] on the CPU, got ",
                    adjacency.sizes(), " on ", adjacency.device());
  const Tensor entries =
      (adjacency.is_sparse() ? adjacency : adjacency.to_sparse()).detach().coalesce();
  const Tensor places = entries.indices().t().contiguous();
  const Tensor values = entries.values().to(at::kDouble).contiguous();
  TORCH_CHECK_VALUE(values.isfinite().all().item<bool>(), "[", function,
                    "] adjacency: expected finite numbers, got NaN or infinity");
  const int64_t* place = places.const_data_ptr<int64_t>();
  const double* value = values.const_data_ptr<double>();
  std::vector<Eigen::Triplet<double, int64_t>> edges;
  for (int64_t k = 0; k < values.size(0); ++k) {
    const int64_t cause = place[2 * k], effect = place[2 * k + 1];
    if (cause != effect && value[k] != 0) edges.emplace_back(cause, effect, value[k]);
  }
  SparseGraph graph(adjacency.size(0), adjacency.size(0));
  graph.setFromTriplets(edges.begin(), edges.end());
  return graph;
}

Points to_points(const char* function, const Tensor& tangents) {
  TORCH_CHECK_TYPE(at::isFloatingType(tangents.scalar_type()), "[", function,
                   "] tangents: expected floating point numbers, got ", tangents.scalar_type());
  TORCH_CHECK_VALUE(tangents.is_cpu() && tangents.dim() == 2 && tangents.size(1) > 0, "[", function,
                    "] tangents: expected shape [M, d] on the CPU, got ", tangents.sizes(), " on ",
                    tangents.device());
  const Tensor rows = tangents.detach().to(at::kDouble).contiguous();
  // Not above catches NaN, too.
  TORCH_CHECK_VALUE(rows.norm(2, 1).le(kLargestRadius).all().item<bool>(), "[", function,
                    "] tangents: expected rows of norm ", kLargestRadius, " or less");
  return Points(TableView(rows.const_data_ptr<double>(), rows.size(0), rows.size(1)));
}

}  // namespace
}  // namespace causal

CausalEmbedding causal_embed(const Tensor& adjacency, const CausalEmbeddingOptions& options) {
  const causal::SparseGraph graph = causal::to_graph("causal_embed", adjacency);
  const auto begun = std::chrono::steady_clock::now();
  causal::Embedding made;
  try {
    made = causal::embed(graph, options, causal::on_threads);
  } catch (const InputError& error) {
    TORCH_CHECK_VALUE(false, "[causal_embed] ", error.what());
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
  const auto tensor = [](const double* data, at::IntArrayRef shape) {
    return at::from_blob(const_cast<double*>(data), shape, at::kDouble).clone();
  };
  const int64_t nodes = graph.rows();
  return {tensor(made.tangents.data(), {nodes, options.dimension}),
          tensor(made.generality.data(), {nodes}),
          made.loss,
          made.attraction.hops,
          made.attraction.side,
          made.without_negatives,
          seconds.count()};
}

CausalRanking causal_ranking(const Tensor& tangents, const Tensor& adjacency) {
  const causal::SparseGraph graph = causal::to_graph("causal_ranking", adjacency);
  const causal::Points points = causal::to_points("causal_ranking", tangents);
  TORCH_CHECK_VALUE(points.count() == graph.rows(), "[causal_ranking] tangents: expected ",
                    graph.rows(), " rows, one a node, got ", points.count());
  const auto ranking =
      causal::rank_ancestors(points, causal::transitive_closure(graph), causal::on_threads);
  return {ranking.mean_rank, ranking.mean_precision, ranking.pairs};
}

std::string causal_embedding_warning(const Tensor& tangents,
                                     const std::optional<Tensor>& adjacency) {
  constexpr const char* kName = "causal_embedding_warning";
  causal::to_points(kName, tangents);  // checks them
  const Tensor rows = tangents.detach().to(at::kDouble).contiguous();
  const causal::Matrix points =
      causal::TableView(rows.const_data_ptr<double>(), rows.size(0), rows.size(1));
  if (!adjacency) return causal::why_blank(points);
  const causal::SparseGraph graph = causal::to_graph(kName, *adjacency);
  TORCH_CHECK_VALUE(points.rows() == graph.rows(), "[", kName, "] tangents: expected ",
                    graph.rows(), " rows, one a node, got ", points.rows());
  return causal::why_blank(points, graph);
}

Tensor hyperbolic_distances(const Tensor& tangents) {
  const causal::Points points = causal::to_points("hyperbolic_distances", tangents);
  Tensor squares = at::empty({points.count(), points.count()}, at::kDouble);
  double* rows = squares.mutable_data_ptr<double>();
  causal::on_threads(points.count(), [&](int64_t point) {
    Eigen::ArrayXd row(points.padded());
    kernels::hyperbolic_squares(points.one(point), points.all(), row.data());
    std::copy_n(row.data(), points.count(), rows + point * points.count());
  });
  return 2 * squares.sqrt().asinh();
}

}  // namespace nsimplex
