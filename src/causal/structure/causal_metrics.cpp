// The metrics of nsimplex/causal.h and their operators.

#include <ATen/ATen.h>
#include <nsimplex/causal.h>
#include <torch/library.h>

#include <limits>

#include "causal/graph/graph_metrics.h"
#include "causal/option_names.h"
#include "causal/structure/linear_order.h"
#include "causal/structure/prepare.h"
#include "causal/tables/few_rows.h"
#include "causal/tables/usable_table.h"
#include "causal/tensors.h"

namespace nsimplex {

using at::Tensor;
using namespace causal;

namespace {

// The known graph over the columns of a checked matrix. `place`: "[function] truth".
Tensor checked_truth(const char* place, const Tensor& truth, const char* name,
                     const Tensor& found) {
  Tensor checked = checked_graph(place, truth);
  TORCH_CHECK_VALUE(checked.sizes() == found.sizes(), place, ": expected shape ", found.sizes(),
                    " as of ", name, ", got ", checked.sizes());
  return checked;
}

// Names of columns, one each, or none.
void check_names(const char* function, const std::vector<std::string>& names, const Tensor& table) {
  as_function(function, [&] {
    if (!names.empty()) require_one_per_column("names", names.size(), table.size(1));
  });
}

}  // namespace

CausalMetrics causal_metrics(const Tensor& graph, const Tensor& truth) {
  const Tensor one = checked_graph("[causal_metrics] graph", graph);
  const Tensor other = checked_truth("[causal_metrics] truth", truth, "graph", one);
  const Matrix found = view_matrix(one), known = view_matrix(other);
  const EdgeErrors errors = edge_errors(found, known);
  return {errors.edges,
          errors.true_edges,
          errors.reversed,
          errors.extra,
          errors.missing,
          errors.shd,
          intervention_distance(found, known),
          errors.precision,
          errors.recall,
          errors.f1,
          errors.false_discovery_rate};
}

EdgeCurves edge_curves(const Tensor& scores, const Tensor& truth) {
  const Tensor one = checked_square("[edge_curves] scores", scores);
  const Tensor other = checked_truth("[edge_curves] truth", truth, "scores", one);
  TORCH_CHECK_VALUE(
      !one.isnan().any().item<bool>(),
      "[edge_curves] scores: expected numbers, got NaN, which has no place in a ranking");
  const EdgeRanking ranking = edge_ranking(view_matrix(one), view_matrix(other));
  return {ranking.auroc, ranking.auprc};
}

Sortability causal_sortability(const Tensor& table, const Tensor& graph) {
  const auto [values, edges] = checked_table_and_graph("[causal_sortability] ", table, graph);
  TORCH_CHECK_VALUE(values.size(0) > 0, "[causal_sortability] table: expected rows, got none");
  const Matrix known = view_matrix(edges);
  return {sortability(column_variances(view_matrix(values)), known),
          sortability(column_r2(view_matrix(values)), known)};
}

std::vector<CausalBaseline> causal_baselines(const Tensor& table) {
  const Tensor values = checked_table("[causal_baselines] table", table);
  return as_function("causal_baselines", [&] {
    const Matrix prepared = prepared_table(view_matrix(values), /*standardise=*/false);
    std::vector<CausalBaseline> all;
    for (const Baseline& each :
         baselines(TableView(prepared.data(), prepared.rows(), prepared.cols()))) {
      all.push_back(
          {each.name, to_tensor(each.structure.weights), to_tensor(each.structure.scores)});
    }
    return all;
  });
}

namespace {

std::tuple<std::vector<int64_t>, std::vector<double>> metrics(const Tensor& graph,
                                                              const Tensor& truth) {
  const CausalMetrics m = causal_metrics(graph, truth);
  return {{m.edges, m.true_edges, m.reversed, m.extra, m.missing, m.shd, m.sid.value_or(-1)},
          {m.precision, m.recall, m.f1, m.fdr}};
}

std::tuple<double, double> ranking(const Tensor& scores, const Tensor& truth) {
  const EdgeCurves result = edge_curves(scores, truth);
  return {result.auroc, result.auprc};
}

std::tuple<double, double> sortabilities(const Tensor& table, const Tensor& graph) {
  const Sortability result = causal_sortability(table, graph);
  return {result.variance, result.r2};
}

std::vector<Tensor> baseline_graphs(const Tensor& table) {
  std::vector<Tensor> flat;
  for (CausalBaseline& each : causal_baselines(table)) {
    flat.push_back(std::move(each.adjacency));
    flat.push_back(std::move(each.scores));
  }
  return flat;
}

// Returns values, kept columns and dropped columns, and {rows dropped, values filled}.
std::tuple<Tensor, std::vector<int64_t>, std::vector<std::string>, std::vector<int64_t>>
whole_table(const Tensor& table, std::vector<std::string> names, std::string_view missing,
            bool drop) {
  const Tensor values = checked_table("[usable_table] table", table, Gaps::kept);
  check_names("usable_table", names, values);
  return as_function("usable_table", [&] {
    const MissingValues rule = parse_name<MissingValues>("missing", missing);
    const UsableTable kept =
        usable_table(view_matrix(values), std::move(names), {rule, drop}, "the table");
    return std::tuple{to_tensor(kept.values), kept.columns, kept.dropped,
                      std::vector<int64_t>{kept.dropped_rows, kept.filled}};
  });
}

// The warning of few_rows_warning(), of columns that messages show by these names.
std::string few_rows(const Tensor& table, const std::vector<std::string>& names) {
  const Tensor values = checked_table("[causal_few_rows] table", table, Gaps::kept);
  check_names("causal_few_rows", names, values);
  return few_rows_warning(view_matrix(values), names);
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("causal_metrics(Tensor graph, Tensor truth) -> (int[], float[])", TORCH_FN(metrics));
  m.def("causal_edge_curves(Tensor scores, Tensor truth) -> (float, float)", TORCH_FN(ranking));
  m.def("causal_sortability(Tensor table, Tensor graph) -> (float, float)",
        TORCH_FN(sortabilities));
  m.def("causal_baselines(Tensor table) -> Tensor[]", TORCH_FN(baseline_graphs));
  m.def(
      "causal_usable_table(Tensor table, str[] names, str missing, bool drop) -> (Tensor, int[], "
      "str[], int[])",
      TORCH_FN(whole_table));
  m.def("causal_few_rows(Tensor table, str[] names) -> str", TORCH_FN(few_rows));
}

}  // namespace
}  // namespace nsimplex
