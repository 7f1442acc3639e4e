// What follows from a causal graph: effects, samples, counterfactuals, and tests of a known graph.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal_options.h>
#include <nsimplex/version.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// All functions are for linear effects. Graphs are float64 [M, M] on the CPU; entries other than 0
/// are edges i -> j. Errors are c10::ValueError and c10::TypeError that name the argument.
namespace nsimplex {

struct CausalEffectOptions {
  double level = 0.95;  ///< of intervals
  /// Graphs [M, M] of samples of the rows, as edge_confidence() learns them.
  std::vector<at::Tensor> samples = {};
};

/// The effect if a column has these causes.
struct PossibleEffect {
  std::vector<int64_t> causes;      ///< of the column whose effect it is, ascending
  std::vector<int64_t> adjustment;  ///< columns of the regression beside it, ascending
  double effect, error;             ///< the estimate and its standard error; 0 without a path
  double low, high;                 ///< its interval
};

/// The total effect of a column i on a column j: by how much the mean of j rises per unit by which
/// an intervention raises i.
struct CausalEffect {
  double effect;       ///< mean of the possible effects
  double least, most;  ///< of the possible effects; equal if the graph tells the effect
  /// The interval. It has the smallest and the largest possible effect with their errors; with
  /// samples, it is that of the estimates in their graphs.
  double low, high;
  double paths;  ///< share of the samples whose graph may have a directed path; NaN without samples
  std::vector<PossibleEffect> possible;  ///< at least one
};

/// The total effect of column `cause` on column `effect` of a table [n, M], float64, n >= 4, in the
/// units of the table. A pair of columns with both entries in the graph is an edge of open
/// direction, as in CausalLimits::cpdag.
///
/// With directions for all edges, the effect is the coefficient of the cause in a regression of the
/// effect on the cause and the optimal adjustment set, and 0 without a directed path. The interval
/// is Student's; it holds for the right graph, and noise of any kind if there are many rows. With
/// open directions, there is one possible effect per set of causes that column `cause` may have.
///
/// With `samples`, every one of them gives the estimate of all rows in its graph (each possible one
/// with equal weight). The interval is that of the mixture of these estimates with their errors. So
/// it also says how far the graph is uncertain. Rows have chosen the graph and estimate the effect,
/// which makes intervals of a learned graph too narrow; docs/causal/effects.md says how often they
/// hold.
///
/// Complexity: O(n M^2), and O(M edges + p^3) per possible effect and sample for an adjustment set
/// of p columns.
///
/// Sources: Henckel, Perkovic, Maathuis, JRSS B 2022 (optimal adjustment); Maathuis, Kalisch,
/// Buehlmann, Annals of Statistics 2009 (open directions).
NSIMPLEX_API CausalEffect causal_effect(const at::Tensor& table, const at::Tensor& graph,
                                        int64_t cause, int64_t effect,
                                        const CausalEffectOptions& options = {});

/// x_j = intercept_j + sum_i x_i coefficients_ij + noise of variance_j. The coefficients are an
/// acyclic graph.
struct LinearCausalModel {
  at::Tensor coefficients;  ///< float64 [M, M]; 0 where the graph has no edge
  at::Tensor intercepts;    ///< float64 [M]
  at::Tensor variances;     ///< float64 [M], the mean of squared residuals
};

/// The model of a graph by least squares on a table [n, M]. Complexity: O(n M^2 + M p^3) for p
/// causes.
NSIMPLEX_API LinearCausalModel linear_causal_model(const at::Tensor& table,
                                                   const at::Tensor& graph);

/// Rows of the model [rows, M] with Gaussian noise. `interventions` set columns: x_j = v in every
/// row. Calls of one seed have the same noise whatever is set, so their tables show the effect on
/// each row. Complexity: O(rows edges).
NSIMPLEX_API at::Tensor sample_causal_model(const LinearCausalModel& model, int64_t rows,
                                            const std::vector<Intervention>& interventions = {},
                                            int64_t seed = 0);

/// What the rows [n, M] of a table would have been if the interventions had set columns in them:
/// the noise of each row stays as it was. Complexity: O(n edges).
///
/// Source: Pearl, "Causality", 2nd edition 2009, theorem 7.1.7.
NSIMPLEX_API at::Tensor counterfactual_rows(const LinearCausalModel& model, const at::Tensor& table,
                                            const std::vector<Intervention>& interventions);

// A test of a known graph.

struct GraphCheckOptions {
  double level = 0.05;         ///< of the tests together
  int64_t permutations = 200;  ///< of the names of the columns, at least 1
  int64_t seed = 0;            ///< of the permutations
  /// Another graph to compare with, such as that of causal_fit(); undefined: none.
  at::Tensor learned = {};
  std::vector<std::string> names = {};  ///< of the columns, for the findings; none: x0, x1, ..
  /// Called between permutations. It may throw to stop.
  std::function<void()> checkpoint = {};
};

/// A pair of columns that a graph is tested on: an edge, or an independence that it implies.
struct PairTest {
  int64_t first, second;       ///< an edge first -> second, or columns that no edge joins
  std::vector<int64_t> given;  ///< the columns that are held fixed
  double correlation;          ///< partial, given them
  double p_value;              ///< of the hypothesis that it is 0
  double adjusted;             ///< the p-value after Holm's correction for the number of tests
};

/// How well a graph fits a table.
struct GraphCheck {
  /// Implied independences that the table contradicts at the level, the surest first: each speaks
  /// for an edge that is missing.
  std::vector<PairTest> violated;
  int64_t independences;  ///< number of implied independences tested
  /// Edges without which the table fits as well, at the level: each may be superfluous.
  std::vector<PairTest> superfluous;
  int64_t edges;
  double bic;                      ///< of the linear Gaussian model of the graph; smaller is better
  double learned_bic;              ///< of GraphCheckOptions::learned; NaN without it
  at::Tensor permuted_bic;         ///< float64 [permutations]
  at::Tensor permuted_violations;  ///< float64 [permutations]: single tests below the level
  int64_t violations;              ///< single tests of this graph below the level
  /// Share of the permuted graphs, with this one, that have no more violations. A graph that is no
  /// better than one with the names exchanged has a large one.
  double p_value;
  std::vector<std::string> findings;  ///< all of it in sentences
};

/// Tests an acyclic graph [M, M], also one with open directions, on a table [n, M], float64, n >= 4.
///
/// Column j is independent of every earlier column that no edge joins with it, given the causes of
/// j. These M (M - 1) / 2 - edges independences imply all others. Each is tested by the partial
/// correlation, and each edge by the partial correlation of its ends given the other causes. Holm's
/// correction is for the number of tests of each kind. BIC and the number of violations are compared
/// with those of the same graph after its names were permuted.
///
/// A graph that passes is not proven: the equivalence class of CausalLimits::cpdag has the same
/// independences, and few rows contradict little. The tests are exact for linear Gaussian columns.
///
/// Complexity: O(n M^2), and O(M^2 p^3) per permutation for p causes.
///
/// Sources: Pearl, "Causality", 2009, section 1.2 (ordered Markov condition); Holm 1979; Eulig et
/// al., "Toward falsifying causal graphs using a permutation-based test", AAAI 2025.
NSIMPLEX_API GraphCheck check_causal_graph(const at::Tensor& table, const at::Tensor& graph,
                                           const GraphCheckOptions& options = {});

}  // namespace nsimplex
