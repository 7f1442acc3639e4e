// The public function causal_fit(): it prepares the table, chooses the estimator, and makes a graph
// of its answer.
//
// The same function as an operator for Python.

#include <ATen/ATen.h>
#include <nsimplex/causal.h>
#include <torch/library.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "causal/graph/acyclic.h"
#include "causal/graph/edge_constraints.h"
#include "causal/option_names.h"
#include "causal/structure/automatic_fit.h"
#include "causal/structure/cape_structure.h"
#include "causal/structure/estimators.h"
#include "causal/structure/fit_arguments.h"
#include "causal/structure/fit_watch.h"
#include "causal/structure/linear_order.h"
#include "causal/structure/nonlinear_order.h"
#include "causal/structure/prepare.h"
#include "causal/structure/row_statistics.h"
#include "causal/structure/told_directions.h"
#include "causal/tables/column_error.h"
#include "causal/tensors.h"
#include "support/error.h"
#include "support/interruptible.h"
#include "support/stopwatch.h"

namespace nsimplex {
namespace {

using at::Tensor;
using namespace causal;

constexpr double kThreshold = 0.2;  // that of the paper

// One case per estimator.
Structure estimate(TableView table, const CausalFitOptions& options) {
  switch (options.estimator) {
    case StructureEstimator::automatic:
    case StructureEstimator::order:
      return options.nonlinear ? fit_nonlinear_order(table, options) : fit_order(table, options);
    case StructureEstimator::logdet:
      return options.nonlinear ? fit_logdet_networks(table, options) : fit_logdet(table, options);
    case StructureEstimator::notears:
      return fit_notears(table, options);
    case StructureEstimator::lowrank:
      return fit_lowrank(table, options);
    case StructureEstimator::spectral:
      return fit_spectral(table, options);
    case StructureEstimator::paper:
    case StructureEstimator::paper_lowrank:
      return fit_paper(table, options);
  }
  throw InputError("estimator: expected one of StructureEstimator");
}

double threshold_of(const CausalFitOptions& options) {
  // The estimators `auto` and `order` select edges by BIC and need no threshold.
  const double usual = is_order(options.estimator) ? 0 : kThreshold;
  return options.threshold.value_or(usual);
}

TableView view(const Matrix& matrix) { return {matrix.data(), matrix.rows(), matrix.cols()}; }

// The table less the means of its groups.
Matrix within_groups(TableView raw, const CausalFitOptions& options) {
  prepared_table(raw, false);  // whole, with columns that vary
  Matrix result = without_groups(raw, numbered_groups(options.groups, raw.rows()));
  for (int64_t column = 0; column < raw.cols(); ++column) {
    const double rounding = 1e-12 * raw.col(column).cwiseAbs().maxCoeff();
    if (result.col(column).cwiseAbs().maxCoeff() > rounding) continue;
    throw ColumnError("table: column {} is constant in every group", {column});
  }
  return result;
}

// prepared_table() of a table with gaps, which stay.
Matrix prepared_around_gaps(TableView raw, bool standardise) {
  Matrix filled = raw;
  for (int64_t column = 0; column < raw.cols(); ++column) {
    const auto there = !raw.col(column).array().isNaN();
    if (there.count() < 2) {
      throw ColumnError("table: column {} has fewer than two values", {column});
    }
    int64_t row = 0;
    while (std::isnan(raw(row, column))) ++row;
    const double first = raw(row, column);
    // About the first value, so that the sum stays in range.
    const double mean = first + there.select(raw.col(column).array() - first, 0.0).sum() /
                                    static_cast<double>(there.count());
    filled.col(column) = there.select(raw.col(column), mean);
  }
  Matrix table = prepared_table(view(filled), standardise);
  for (int64_t column = 0; column < raw.cols(); ++column) {
    const auto there = !raw.col(column).array().isNaN();
    // The mean in the gaps takes nothing from the sum of squares.
    if (standardise) {
      table.col(column) *=
          std::sqrt(static_cast<double>(there.count()) / static_cast<double>(raw.rows()));
    }
    table.col(column) = there.select(table.col(column), std::nan(""));
  }
  return table;
}

// The table that an estimator sees.
Matrix table_of(TableView raw, const CausalFitOptions& options) {
  if (options.missing == MissingValues::likelihood && raw.hasNaN()) {
    return prepared_around_gaps(raw, options.standardise);
  }
  if (!options.kinds.empty()) {
    Matrix table = prepared_table(raw, options.standardise);
    for (size_t column = 0; column < options.kinds.size(); ++column) {
      const auto at = static_cast<int64_t>(column);
      if (options.kinds[column] != ColumnKind::continuous) table.col(at) = raw.col(at);
    }
    return table;
  }
  if (options.groups.empty()) return prepared_table(raw, options.standardise);
  const Matrix grouped = within_groups(raw, options);
  return prepared_table(view(grouped), options.standardise);
}

CausalFit fit(TableView raw, const CausalFitOptions& options) {
  const Stopwatch watch;
  check_fit_options(options, raw.rows(), raw.cols());
  const AllowedEdges edges(options.constraints, raw.cols());
  const double threshold = threshold_of(options);
  const Matrix table = table_of(raw, options);
  if (!is_order(options.estimator) && !options.standardise) {
    require_moderate_scale(raw, std::string(name_of(options.estimator)));
  }
  bool interrupted = false;
  CausalFitOptions own = options;
  if (options.stop) {
    own.stop = [&] {
      interrupted = interrupted || options.stop();
      return interrupted;
    };
  }
  Structure structure = estimate(view(table), own);
  Matrix adjacency = structure.weights;
  for (int64_t cause = 0; cause < adjacency.rows(); ++cause) {
    for (int64_t effect = 0; effect < adjacency.cols(); ++effect) {
      double& weight = adjacency(cause, effect);
      if (std::abs(weight) < threshold && !edges.required(cause, effect)) weight = 0;
    }
  }
  const std::vector<CausalEdge> removed = repair_cycles(adjacency, edges);
  return {to_tensor(std::move(adjacency)),
          to_tensor(std::move(structure.weights)),
          to_tensor(std::move(structure.scores)),
          edge_table(removed),
          structure.model,
          watch.seconds(),
          interrupted,
          {},
          {},
          {options.nonlinear, false, options.kinds, {}}};
}

// fit() with the paths of the constraints. One that is not found becomes a required edge.
CausalFit fit_with_paths(TableView raw, CausalFitOptions options) {
  const std::vector<CausalEdge> paths = options.constraints.paths;
  const AllowedEdges allowed(options.constraints, raw.cols());
  while (true) {
    CausalFit found = fit(raw, options);
    const Matrix graph = view_matrix(found.adjacency);
    const auto absent = std::ranges::find_if(paths, [&](const CausalEdge& path) {
      return path_between(graph, path.cause, path.effect).empty();
    });
    if (absent == paths.end() || found.interrupted) return found;
    if (!allowed.allowed(absent->cause, absent->effect)) {
      throw ColumnError(std::string("paths[")
                            .append(std::to_string(absent - paths.begin()))
                            .append("]: expected a path that the table shows, or one whose edge "
                                    "is allowed, got ({}, {})"),
                        {absent->cause, absent->effect});
    }
    options.constraints.required.push_back(*absent);
  }
}

// Turns edges of a fit by noises, and then ranks pairs by their weights.
void turn_edges(CausalFit& fit, TableView raw, const CausalFitOptions& options) {
  const Stopwatch watch;
  NoiseDirections found = directions_by_noise(
      to_tensor(prepared_table(raw, options.standardise)), fit.adjacency,
      {.constraints = options.constraints, .checkpoint = options.checkpoint, .stop = options.stop});
  fit.interrupted = found.interrupted;
  if (found.gain > 0) {
    fit.adjacency = fit.weights = found.adjacency;
    fit.scores = found.adjacency.abs();
  }
  if (found.told) fit.model = kNoiseModel;
  fit.choices.orient_by_noise = true;
  fit.noise = std::move(found);
  fit.seconds += watch.seconds();
}

CausalFit fit_with_noise(TableView raw, const CausalFitOptions& options) {
  CausalFit found = fit_with_paths(raw, options);
  if (options.orient_by_noise && !found.interrupted) turn_edges(found, raw, options);
  return found;
}

Tensor open_graph(const CausalFit& fit, const Tensor& table, const CausalFitOptions& options) {
  constexpr int64_t kMostColumns = 1000;  // in O(M^3)
  if (table.size(1) > kMostColumns) return fit.adjacency.ne(0);
  const bool scaled = options.standardise || (options.kinds.empty() && has_one_variance(table));
  return told_graph(fit, options, scaled);
}

}  // namespace

CausalFit causal_fit(const Tensor& table, const CausalFitOptions& options) {
  const Tensor values = checked_matrix("[causal_fit] table", table);
  return as_function("causal_fit", [&] {
    if (!options.names.empty()) {
      require_one_per_column("names", options.names.size(), values.size(1));
    }
    return naming_columns(options.names, [&] {
      const TableView raw = view_matrix(values);
      const Stopwatch watch;
      check_fit_options(options, raw.rows(), raw.cols());
      const auto learn = [&](const CausalFitOptions& own) { return fit_with_noise(raw, own); };
      CausalFit found = options.estimator == StructureEstimator::automatic
                            ? automatic_fit(raw, options, learn)
                            : learn(options);
      found.cpdag = open_graph(found, values, settled_options(options, found.choices));
      found.seconds = watch.seconds();
      return found;
    });
  });
}

namespace causal {
namespace {

using at::Tensor;

// The fit; the edges that noises turned, their gain, p-value, finding, and whether they tell
// directions, or no finding; what the fit chose; and its seconds.
using Answer = std::tuple<Tensor, Tensor, Tensor, Tensor, std::string, Tensor, Tensor, double,
                          double, std::string, bool, bool, bool, std::vector<std::string>,
                          std::vector<std::string>, double>;

struct FitCall {
  Tensor table;
  FitArguments options;
  OptionalTensor watch;
  std::optional<std::vector<std::string>> names;

  static auto fields(auto& self) {
    return std::tuple_cat(std::tie(self.table), FitArguments::fields(self.options),
                          std::tie(self.watch, self.names));
  }
};

Answer fit_rows(const FitCall& call) {
  const Tensor values = checked_matrix("[causal_fit] table", call.table);
  CausalFitOptions options = fit_options("causal_fit", call.options, values.size(0));
  if (call.names) options.names = *call.names;
  const FitWatch watched(call.watch);
  watched.expect(steps_of(options, values.size(0)));
  const Interruptible interruptible;
  const auto end = [&] { return interruptible.came() || watched.asked_to_end(); };
  // Only a caller that looks whether the fit was interrupted gets a graph that is not finished.
  const bool keeps = watched.shared() && keeps_graph(options.estimator);
  if (keeps) options.stop = end;
  int64_t done = 0;
  options.checkpoint = [&] {
    watched.step(done++);
    if (!keeps && end()) throw std::runtime_error("interrupted");
  };
  CausalFit result = causal_fit(values, options);
  if (result.interrupted) watched.ended_early();
  const NoiseDirections noise = result.noise.value_or(NoiseDirections{});
  std::vector<std::string> kinds;
  for (const ColumnKind kind : result.choices.kinds) kinds.emplace_back(name_of(kind));
  return {result.adjacency,
          result.weights,
          result.scores,
          result.removed,
          result.model,
          result.cpdag,
          noise.turned.defined() ? noise.turned : edge_table({}),
          noise.gain,
          noise.p_value,
          noise.finding,
          noise.told,
          result.choices.nonlinear,
          result.choices.orient_by_noise,
          kinds,
          result.choices.findings,
          result.seconds};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::string schema = "causal_fit_rows(Tensor table, " + fit_schema() +
                             ", Tensor(a!)? watch=None, str[]? names=None) -> (Tensor, Tensor, "
                             "Tensor, Tensor, str, Tensor, Tensor, float, float, str, bool, "
                             "bool, bool, str[], str[], float)";
  m.def(schema.c_str(), TORCH_FN(flat<&fit_rows>));
}

}  // namespace
}  // namespace causal
}  // namespace nsimplex
