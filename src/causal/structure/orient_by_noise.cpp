// The function orient_by_noise(), and its operator for Python.

#include <ATen/ATen.h>
#include <nsimplex/causal.h>
#include <torch/library.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "causal/graph/acyclic.h"
#include "causal/structure/dependent_noises.h"
#include "causal/structure/fit_arguments.h"
#include "causal/structure/linear_model.h"
#include "causal/structure/noise_directions.h"
#include "causal/structure/noise_input.h"
#include "causal/structure/told_directions.h"
#include "causal/tables/column_error.h"
#include "causal/tensors.h"
#include "support/interruptible.h"
#include "support/number_text.h"

namespace nsimplex {
namespace {

using at::Tensor;

constexpr double kDependenceLevel = 0.05;  // of tests of all pairs of noises

causal::Dependence dependence_of(const Tensor& table, const Tensor& graph) {
  const Tensor values = causal::times_power(table, -causal::binary_exponents(table));
  const causal::LinearModel model = causal::linear_model(values, graph);
  return causal::dependent_noises(causal::noises(values, model), graph.ne(0).fill_diagonal_(false),
                                  kDependenceLevel);
}

std::string edges_text(int64_t count) { return c10::str(count, count == 1 ? " edge" : " edges"); }

// The turned graph if its noises are nearer to independent, as those of the right graph of a linear
// model are: at most half as many pairs depend on each other, and all pairs together less. Where
// effects are curved, noises depend on each other however edges point.
NoiseDirections kept_if_independent(const Tensor& table, const Tensor& given, double level,
                                    causal::TurnedGraph found) {
  NoiseDirections result{causal::to_tensor(std::move(found.adjacency)),
                         causal::edge_table(found.turned), found.gain, found.p_value,
                         found.interrupted};
  const int64_t turned = result.turned.size(0);
  const std::string p_value = number_text("%.2g", found.p_value);
  if (found.gain <= 0) {
    result.told = found.p_value < level && dependence_of(table, given).pairs.size(0) == 0;
    result.finding = found.p_value >= level
                         ? c10::str("noises turned no edge (p = ", p_value, " if all are Gaussian)")
                         : c10::str("noises are not Gaussian (p = ", p_value,
                                    "), and no change of the graph explains them better");
  } else {
    const causal::Dependence before = dependence_of(table, given),
                             after = dependence_of(table, result.adjacency);
    const int64_t dependent = after.pairs.size(0), had = before.pairs.size(0);
    if (2 * dependent <= had && after.total < before.total) {
      result.told = true;
      result.finding = c10::str("noises are not Gaussian (p = ", p_value, ") and turned ",
                                edges_text(turned), "; ", dependent,
                                " pairs of noises depend on each other, and ", had, " did before");
    } else {
      result.finding =
          c10::str("noises turned no edge: they are not Gaussian (p = ", p_value, "), but with ",
                   edges_text(turned), " turned, ", dependent,
                   " pairs of noises would depend on each other, and ", had, " do now");
      if (had > 0) {
        result.finding += ", so effects may be curved or a common cause may be outside the table";
      }
      result.adjacency = given.clone();
      result.turned = result.turned.narrow(0, 0, 0);
      result.gain = 0;
    }
  }
  if (found.few_valued > 0) {
    result.finding +=
        c10::str("; edges of ", found.few_valued, found.few_valued == 1 ? " column" : " columns",
                 " of few values keep their directions");
  }
  return result;
}

// The constraints with the edges of the graph's paths required, so that the paths stay. Throws
// InputError.
EdgeConstraints with_kept_paths(EdgeConstraints constraints, const causal::Matrix& graph) {
  for (const CausalEdge& path : std::exchange(constraints.paths, {})) {
    const std::vector<CausalEdge> edges = causal::path_between(graph, path.cause, path.effect);
    if (edges.empty()) {
      throw causal::ColumnError("graph: expected a path {} -> {}, got none",
                                {path.cause, path.effect});
    }
    constraints.required.insert(constraints.required.end(), edges.begin(), edges.end());
  }
  return constraints;
}

}  // namespace

NoiseDirections causal::directions_by_noise(const at::Tensor& table, const at::Tensor& graph,
                                            const NoiseDirectionsOptions& options) {
  const TableView values = view_matrix(table), edges = view_matrix(graph);
  if (!options.constraints.paths.empty()) {
    check_noise_arguments(values, edges, options.level);
    const AllowedEdges checked(options.constraints, values.cols());
  }
  const EdgeConstraints constraints = with_kept_paths(options.constraints, edges);
  TurnedGraph found = turned_by_noise(values, edges, options.level, constraints, [&] {
    if (options.checkpoint) options.checkpoint();
    return !(options.stop && options.stop());
  });
  return kept_if_independent(table, graph, options.level, std::move(found));
}

NoiseDirections orient_by_noise(const at::Tensor& table, const at::Tensor& graph,
                                const NoiseDirectionsOptions& options) {
  const at::Tensor values = causal::checked_matrix("[orient_by_noise] table", table);
  const at::Tensor edges = causal::checked_matrix("[orient_by_noise] graph", graph);
  return as_function("orient_by_noise",
                     [&] { return causal::directions_by_noise(values, edges, options); });
}

namespace causal {
namespace {

std::tuple<at::Tensor, at::Tensor, double, double, std::string, bool> oriented(
    const at::Tensor& table, const at::Tensor& graph, double level, const at::Tensor& forbidden,
    const at::Tensor& required, at::IntArrayRef tiers, at::IntArrayRef exogenous,
    at::IntArrayRef sinks, const at::Tensor& paths) {
  const Interruptible interruptible;
  const NoiseDirections found =
      orient_by_noise(table, graph,
                      {.level = level,
                       .constraints = parse_constraints("orient_by_noise", forbidden, required,
                                                        tiers, exogenous, sinks, paths),
                       .checkpoint = [&] { interruptible.check(); }});
  return {found.adjacency, found.turned, found.gain, found.p_value, found.finding, found.told};
}

// What is expected in place of which argument and value; empty if nothing is refused.
std::tuple<std::string, std::string, std::string> refused(bool nonlinear, bool groups, bool targets,
                                                          bool kinds, bool likelihood) {
  const auto found = refused_by_noise({nonlinear, groups, targets, kinds, likelihood});
  if (!found) return {};
  return {found->expected, found->argument, found->value};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::string schema =
      std::string("causal_orient_by_noise(Tensor table, Tensor graph, float level, ")
          .append(kConstraintSchema)
          .append(") -> (Tensor, Tensor, float, float, str, bool)");
  m.def(schema.c_str(), TORCH_FN(oriented));
  m.def(
      "causal_refused_by_noise(bool nonlinear, bool groups, bool targets, bool kinds, bool "
      "likelihood) -> (str, str, str)",
      TORCH_FN(refused));
}

}  // namespace
}  // namespace causal
}  // namespace nsimplex
