// The functions causal_limits() and variance_order() and their operators.

#include <ATen/ATen.h>
#include <nsimplex/causal.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <tuple>
#include <vector>

#include "causal/graph/acyclic.h"
#include "causal/graph/graph_metrics.h"
#include "causal/structure/dependent_noises.h"
#include "causal/structure/linear_model.h"
#include "causal/structure/linear_order.h"
#include "causal/structure/prepare.h"
#include "causal/structure/told_directions.h"
#include "causal/tensors.h"
#include "support/number_text.h"

namespace nsimplex {
namespace {

using at::Tensor;
using namespace causal;

constexpr double kSorted = 0.9;  // varsortability from which variances count as telling the order
constexpr int64_t kTellingEdges = 5;  // a graph with fewer edges may be sorted by chance
constexpr int64_t kShownPairs = 8;

Tensor edges_of(const Tensor& graph) { return graph.ne(0).fill_diagonal_(false); }

std::vector<std::string> sentences(const CausalLimits& found,
                                   const std::vector<std::string>& names) {
  const auto name = [&](int64_t column) {
    return names.empty() ? c10::str("x", column) : names[static_cast<size_t>(column)];
  };
  const auto pairs = [&](const Tensor& columns, const Tensor* p_values) {
    std::string shown;
    const int64_t all = columns.size(0);
    for (int64_t k = 0; k < std::min(all, kShownPairs); ++k) {
      const int64_t* pair = columns.const_data_ptr<int64_t>() + 2 * k;
      shown += c10::str(k > 0 ? ", " : "", name(pair[0]), " - ", name(pair[1]));
      if (p_values) shown += number_text(" (p = %.1g)", p_values->const_data_ptr<double>()[k]);
    }
    return all > kShownPairs ? c10::str(shown, " and ", all - kShownPairs, " more") : shown;
  };
  std::vector<std::string> said{number_text("BIC of the linear Gaussian model: %.1f", found.bic)};
  if (found.reversible.size(0) > 0) {
    said.push_back(c10::str(
        "The direction of ", found.reversible.size(0), " of ", found.variances.edges,
        " edges cannot be told from linear Gaussian data: ", pairs(found.reversible, nullptr)));
  } else {
    said.emplace_back("Linear Gaussian data tell the direction of every edge");
  }
  if (!found.variances.evidence.empty()) said.push_back(found.variances.evidence);
  if (found.dependent.size(0) > 0) {
    said.push_back(
        c10::str("The noises of ", found.dependent.size(0), " of ", found.tests,
                 " pairs of columns depend on each other, which a common cause outside the table, "
                 "a curved effect, a missing edge or a wrong direction explains: ",
                 pairs(found.dependent, &found.p_values)));
  } else {
    said.push_back(c10::str("No dependence between the noises of ", found.tests,
                            " pairs of columns was found; with Gaussian noise a common cause "
                            "outside the table may stay hidden"));
  }
  return said;
}

// variance_order() of checked tensors. Throws InputError "table: ..".
VarianceOrder order_of_variances(const Tensor& values, const Tensor& edges) {
  VarianceOrder found{.varsortability = std::numeric_limits<double>::quiet_NaN(),
                      .edges = edges.sum().item<int64_t>()};
  if (found.edges == 0) return found;
  const Matrix prepared = prepared_table(view_matrix(values), /*standardise=*/false);
  const std::vector<Baseline> all =
      baselines(TableView(prepared.data(), prepared.rows(), prepared.cols()));
  const auto sorted = std::ranges::find(all, "variance_sort", &Baseline::name);
  const Matrix graph = view_matrix(edges.to(at::kDouble));
  found.shared = (sorted->structure.weights.array() != 0 && graph.array() != 0).count();
  found.varsortability = sortability(column_variances(view_matrix(values)), graph);
  if (found.edges >= kTellingEdges && found.varsortability >= kSorted) {
    found.evidence =
        c10::str("Variances alone order the columns: they rise along ",
                 number_text("%.0f%%", 100 * found.varsortability),
                 " of the directed paths, and sorting by variance gives ", found.shared, " of the ",
                 found.edges, " edges; standardised columns show what remains in other units");
  }
  return found;
}

}  // namespace

VarianceOrder variance_order(const Tensor& table, const Tensor& graph) {
  const auto [values, known] = checked_table_and_graph("[variance_order] ", table, graph);
  return as_function("variance_order", [&] { return order_of_variances(values, edges_of(known)); });
}

CausalLimits causal_limits(const Tensor& table, const Tensor& graph,
                           const CausalLimitsOptions& options) {
  const auto [given, known] = checked_table_and_graph("[causal_limits] ", table, graph);
  // Squares stay within the range of double. BIC alone depends on the scale.
  const Tensor exponent = large_exponent(given), values = times_power(given, -exponent);
  const int64_t rows = values.size(0), count = values.size(1);
  TORCH_CHECK_VALUE(rows >= 4, "[causal_limits] table: expected at least 4 rows, got ", rows);
  TORCH_CHECK_VALUE(options.level > 0 && options.level < 1,
                    "[causal_limits] level: expected a number in (0, 1), got ", options.level);
  as_function("causal_limits", [&] {
    if (!options.names.empty()) require_one_per_column("names", options.names.size(), count);
    require_room("table", {count, count});
  });
  const Tensor edges = edges_of(known), weights = edges.to(at::kDouble);
  TORCH_CHECK_VALUE(causal_order(view_matrix(weights)).has_value(),
                    "[causal_limits] graph: expected no cycle");
  const LinearModel model = linear_model(values, weights);
  const Tensor noise = values - values.mm(model.coefficients) - model.intercepts;
  const Tensor deviance =
      noise.square().sum(0) / model.variances +
      static_cast<double>(rows) * (2 * std::numbers::pi * model.variances).log();
  const VarianceOrder variances =
      as_function("causal_limits", [&] { return order_of_variances(values, edges); });
  const auto parameters = static_cast<double>(variances.edges + 2 * count);
  const Tensor cpdag = completed_graph(edges);
  Dependence dependence = dependent_noises(noise, edges, options.level);
  CausalLimits found{
      .bic = deviance.sum().item<double>() + std::log(static_cast<double>(rows)) * parameters +
             2 * std::numbers::ln2 * static_cast<double>(given.numel()) * exponent.item<double>(),
      .cpdag = cpdag,
      .reversible = edges.logical_and(cpdag).logical_and(cpdag.t()).nonzero().contiguous(),
      .variances = variances,
      .dependent = std::move(dependence.pairs),
      .p_values = std::move(dependence.p_values),
      .tests = dependence.tests,
      .findings = {}};
  found.findings = sentences(found, options.names);
  return found;
}

namespace {

std::tuple<double, int64_t, int64_t, std::string> variance_operator(const Tensor& table,
                                                                    const Tensor& graph) {
  VarianceOrder found = variance_order(table, graph);
  return {found.varsortability, found.shared, found.edges, std::move(found.evidence)};
}

// The numbers are varsortability, and shared edges, edges and tests.
std::tuple<double, Tensor, Tensor, double, std::vector<int64_t>, Tensor, Tensor,
           std::vector<std::string>>
limits_operator(const Tensor& table, const Tensor& graph, std::vector<std::string> names,
                double level) {
  const CausalLimits found = causal_limits(table, graph, {std::move(names), level});
  return {found.bic,
          found.cpdag,
          found.reversible,
          found.variances.varsortability,
          std::vector<int64_t>{found.variances.shared, found.variances.edges, found.tests},
          found.dependent,
          found.p_values,
          found.findings};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "causal_limits(Tensor table, Tensor graph, str[] names, float level) -> (float, Tensor, "
      "Tensor, float, int[], Tensor, Tensor, str[])",
      TORCH_FN(limits_operator));
  m.def("causal_variance_order(Tensor table, Tensor graph) -> (float, int, int, str)",
        TORCH_FN(variance_operator));
}

}  // namespace
}  // namespace nsimplex
