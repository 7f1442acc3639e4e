// The functions causal_limits() and variance_order() and their operators.

#include <ATen/ATen.h>
#include <nsimplex/causal.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numbers>
#include <string>
#include <tuple>
#include <vector>

#include "causal/graph/acyclic.h"
#include "causal/graph/graph_metrics.h"
#include "causal/structure/linear_model.h"
#include "causal/structure/linear_order.h"
#include "causal/structure/prepare.h"
#include "causal/tensors.h"

namespace nsimplex {
namespace {

using at::Tensor;
using namespace causal;

constexpr double kSorted = 0.9;  // varsortability from which variances count as telling the order
constexpr int64_t kTellingEdges = 5;  // a graph with fewer edges may be sorted by chance
constexpr int64_t kShownPairs = 8;

Tensor edges_of(const Tensor& graph) { return graph.ne(0).fill_diagonal_(false); }

// The CPDAG [M, M] of an acyclic graph: both entries of a pair whose direction can differ.
Tensor completed(const Tensor& edges) {
  const Tensor joined = edges.logical_or(edges.t());
  const Tensor apart = joined.logical_not().fill_diagonal_(false).to(at::kDouble);
  // Colliders i -> k <- j of columns i, j that no edge joins.
  Tensor fixed = edges.logical_and(apart.mm(edges.to(at::kDouble)).gt(0));
  while (true) {
    const Tensor loose =
        joined.logical_and(fixed.logical_not()).logical_and(fixed.t().logical_not());
    const Tensor arrows = fixed.to(at::kDouble), lines = loose.to(at::kDouble);
    // i -> j - k and no edge i, k: then j -> k.
    const Tensor first = loose.logical_and(arrows.t().mm(apart).gt(0));
    // i -> j -> k and i - k: then i -> k.
    const Tensor second = loose.logical_and(arrows.mm(arrows).gt(0));
    // i - k, i - j -> k, i - l -> k and no edge j, l: then i -> k.
    Tensor third = at::zeros_like(fixed);
    const Tensor open = loose.logical_and(first.logical_or(second).logical_not())
                            .logical_and(lines.mm(arrows).gt(0))
                            .nonzero();
    for (int64_t row = 0; row < open.size(0); ++row) {
      const int64_t i = open[row][0].item<int64_t>(), k = open[row][1].item<int64_t>();
      const Tensor between = loose[i].logical_and(fixed.select(1, k)).nonzero().flatten();
      third[i][k] = apart.index_select(0, between).index_select(1, between).any();
    }
    const Tensor found = first.logical_or(second).logical_or(third);
    if (!found.any().item<bool>()) return fixed.logical_or(loose);
    fixed = fixed.logical_or(found);
  }
}

Tensor standardised(const Tensor& values) {
  const Tensor centred = values - values.mean(0);
  return centred / centred.std(0, /*unbiased=*/false).clamp_min(1e-12);
}

// P-values of correlations of independent numbers, by Fisher's transformation.
Tensor two_sided(const Tensor& correlations, int64_t rows) {
  const double scale = std::sqrt(static_cast<double>(rows - 3));
  const Tensor z = correlations.clamp_max(1 - 1e-15).atanh() * scale;
  return at::erfc(z / std::numbers::sqrt2);
}

struct Dependence {
  Tensor pairs, p_values;
  int64_t tests;
};

// Pairs of columns whose noises depend on each other, the smallest p-value first.
Dependence dependent_noises(const Tensor& residuals, const Tensor& edges, double level) {
  const int64_t rows = residuals.size(0), count = residuals.size(1);
  const auto of_rows = [&](const Tensor& a, const Tensor& b) {
    return (a.t().mm(b) / static_cast<double>(rows)).abs();
  };
  const Tensor noise = standardised(residuals);
  const Tensor bounded = noise.tanh(), bell = (-noise.square() / 2).exp();
  const Tensor slope = (1 - bounded.square()).mean(0);
  const Tensor steep = (2 - 2 * (2 * noise).tanh().square()).mean(0);
  const std::vector<Tensor> curved{standardised((2 * noise).tanh() - bounded * steep / slope),
                                   standardised(bell + bounded * (noise * bell).mean(0) / slope)};
  Tensor largest = at::zeros({count, count}, at::kDouble);
  for (const Tensor& a : curved) {
    for (const Tensor& b : curved) largest = largest.maximum(of_rows(a, b));
  }
  const auto functions = static_cast<double>(curved.size() * curved.size());
  const Tensor curved_p = (functions * two_sided(largest, rows)).clamp_max(1);
  const Tensor plain = standardised(bounded);
  const Tensor plain_p =
      two_sided(of_rows(plain, plain), rows).masked_fill(edges.logical_or(edges.t()), 1);
  const Tensor p = (2 * curved_p.minimum(plain_p)).clamp_max(1);
  const Tensor upper = at::triu_indices(count, count, 1, at::kLong);
  const Tensor own = p.minimum(p.t()).index({upper[0], upper[1]});
  const Tensor order = own.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const Tensor ascending = own.index_select(0, order);
  const Tensor limits = level / at::arange(own.numel(), 0, -1, at::kDouble);
  const int64_t passed = ascending.le(limits).to(at::kLong).cumprod(0).sum().item<int64_t>();
  return {upper.t().index_select(0, order.narrow(0, 0, passed)).contiguous(),
          ascending.narrow(0, 0, passed).clone(), own.numel()};
}

// A number as printf() writes it.
std::string written(const char* format, double number) {
  char text[64];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

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
      if (p_values) shown += written(" (p = %.1g)", p_values->const_data_ptr<double>()[k]);
    }
    return all > kShownPairs ? c10::str(shown, " and ", all - kShownPairs, " more") : shown;
  };
  std::vector<std::string> said{written("BIC of the linear Gaussian model: %.1f", found.bic)};
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
                 written("%.0f%%", 100 * found.varsortability),
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
  const Tensor cpdag = completed(edges);
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
