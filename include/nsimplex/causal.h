// Learns causal graphs from tables, evaluates them, and simulates tables.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal_options.h>
#include <nsimplex/version.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Learns a directed acyclic graph from observations: which columns of a table cause which others.
namespace nsimplex {

/// A causal graph of M columns whose directions take account of the shape of the noise. All tensors
/// are on the CPU.
struct NoiseDirections {
  at::Tensor adjacency;      ///< float64 [M, M]: coefficients of the regressions; 0 means no edge
  at::Tensor turned;         ///< int64 [k, 2]: cause and effect of edges that were reversed
  double gain;               ///< decrease of the cost from the given graph
  double p_value;            ///< of the hypothesis that all noises of the given graph are Gaussian
  bool interrupted = false;  ///< NoiseDirectionsOptions::stop ended the search
  std::string finding = {};  ///< what was done, and why, in a sentence
  /// Whether noises tell the directions: they are not Gaussian, and edges were turned or the noises
  /// of the graph are independent.
  bool told = false;
};

/// What a fit assumed about the table; the estimator auto chose it.
struct FitChoices {
  bool nonlinear = false;             ///< effects are curves
  bool orient_by_noise = false;       ///< noises that are not Gaussian tell directions
  std::vector<ColumnKind> kinds;      ///< of the columns; empty if all are continuous
  std::vector<std::string> findings;  ///< per choice of auto, a sentence that says why
};

/// A causal graph of M columns. A_ij belongs to the edge i -> j in the model x_j = sum_i x_i A_ij +
/// noise. All tensors are on the CPU.
struct CausalFit {
  at::Tensor adjacency;  ///< float64 [M, M]: the graph, acyclic; 0 where there is no edge
  at::Tensor weights;    ///< float64 [M, M]: the estimate before threshold and repair
  at::Tensor scores;     ///< float64 [M, M]: confidence in each edge, >= 0; use it to rank pairs
  /// int64 [r, 2]: cause and effect of edges that were removed to break cycles
  at::Tensor removed;
  /// The model that the estimator chose, or the estimator's name; "noise" if noises tell directions
  std::string model;
  double seconds;            ///< duration of the fit
  bool interrupted = false;  ///< CausalFitOptions::stop ended the search: the best graph so far
  /// bool [M, M]: the edges, with both entries of those whose direction the model, interventions and
  /// prior knowledge leave open. With more than 1,000 columns all edges have their direction.
  at::Tensor cpdag = {};
  /// With CausalFitOptions::orient_by_noise: what noises said. Its graph is that of the fit.
  std::optional<NoiseDirections> noise = {};
  FitChoices choices = {};
};

/// Learns a causal graph from a table [n, M], float64 on the CPU. Rows are observations, n >= 2 and
/// M >= 2. All values must be finite and no column constant. docs/causal/structure.md describes the
/// assumptions of each estimator.
///
/// Columns are centred and, with `standardise`, divided by their standard deviation. Weights refer
/// to these scaled columns. Then edges with |weight| < threshold are removed, and in every cycle
/// the weakest edge is removed (never a required one). With equal options every machine gives the
/// same graph, except for rounding.
///
/// The estimator auto is order with three choices, of which CausalFit::choices tells the reasons:
///
/// - Kinds. Of at least 50 rows without gaps, columns of two values are binary, columns of the values
///   0, 1, .., k - 1 with k from 3 to 5 categories, unless the last is rare as in counts, and other
///   columns of at most 30 whole numbers from 0 counts. Each value of a binary column or category
///   occurs at least five times.
/// - Curves. The graph of linear effects is learned. Its effects are curves if exp(-z^2 / 2) and
///   tanh(2 z) of the standardised causes z lower the squared residuals of a column, by an F-test at
///   the level 0.01 / M. The fit is then repeated with `nonlinear`.
/// - Noise. Otherwise orient_by_noise() turns edges. It is also asked before curves are believed,
///   because noise that is not Gaussian bends the regressions of wrong directions.
///
/// Options that are given stay: `kinds`, `nonlinear`, `orient_by_noise`. Curves and noise need
/// continuous columns of rows without gaps, groups and interventions, and at most 100 and 1,000
/// columns.
///
/// Throws c10::ValueError that names the argument, the expectation and the value.
NSIMPLEX_API CausalFit causal_fit(const at::Tensor& table, const CausalFitOptions& options = {});

/// What a table has that its fit does not assume, in sentences; none if nothing was found. The table
/// [n, M] and the options are those of the fit; `options.names` are the columns in the sentences.
///
/// - Derived columns: a column is a sum of others up to rounding, as totals and indicators of all
///   classes are. Edges among the columns of such a relation are arbitrary, and others may turn.
/// - Rows that are not independent, from the noises of the linear model of the graph. Order: the
///   noises of at least two columns resemble those of the row before, by rank correlations that are
///   significant at the level 0.001 / M. Repeated rows: at least a twentieth of the rows equal
///   earlier ones, with ten times as many equal pairs as the noises let expect. Unequal scale: of
///   three or more columns the median rank correlation of absolute noises is at least 0.1 and three
///   deviations above 0.
/// - Directions: no edge has one that the table tells, or variances alone tell those of fewer than
///   five edges (variance_order() speaks of larger graphs).
/// - Columns: whole numbers of at most ten values that have no kind, and numbers of the rows.
///
/// Order and scale are looked at in the first 200 continuous columns, within groups, without
/// missing values and interventions, and with at least 20 rows.
///
/// Complexity: O(n M^2 + M^3) up to 1,000 columns, and O(n M) beyond, where derived columns are not
/// looked for.
///
/// Throws c10::ValueError and c10::TypeError that name the argument.
NSIMPLEX_API std::vector<std::string> causal_warnings(const at::Tensor& table, const CausalFit& fit,
                                                      const CausalFitOptions& options = {});

// How sure an edge is: the graph is learned again from many samples of the rows.

struct EdgeConfidenceOptions {
  int64_t replicates = 100;  ///< number of samples, 2 to 100,000
  Resampling resampling = Resampling::halves;
  double level = 0.95;  ///< of the intervals of weights
  /// One number per row, or empty: the rows of a block stay together in a sample. Halves are of the
  /// blocks, and a bootstrap draws as many blocks as there are. Blocks of rows that follow each other
  /// suit time series, and blocks of one person's rows repeated measurements.
  std::vector<int64_t> blocks = {};
  /// Called after each sample with the number of samples fitted so far, by one thread at a time. It
  /// may throw to stop.
  std::function<void(int64_t done)> progress = {};
};

/// What samples of the rows say about a graph of M columns. Entry [i, j] is about i -> j. All
/// tensors are on the CPU.
struct NSIMPLEX_API EdgeConfidence {
  at::Tensor adjacency;  ///< float64 [M, M]: the graph of all rows
  /// float64 [M, M]: share of the samples whose graph has the edge i -> j. An edge whose direction
  /// the model of the sample's graph leaves open counts a half, and so does the reverse edge.
  at::Tensor frequencies;
  at::Tensor connected;  ///< float64 [M, M]: share whose graph has an edge in either direction
  /// float64 [M, M]: share whose graph has a directed path from i to j; a path that only some graphs
  /// of the equivalence class have counts a half.
  at::Tensor ancestors;
  at::Tensor low, high;  ///< float64 [M, M]: interval of the weight; NaN without an edge
  double edges;          ///< mean number of edges per sample
  int64_t replicates;    ///< number of samples

  /// The graph of all rows without the edges whose direction has a smaller frequency, or whose
  /// connection is found less often. Both are from 0 to 1.
  at::Tensor stable(double min_frequency = 0.9, double min_connected = 0) const;

  /// An upper bound of the expected number of false edges among those of at least this frequency: q^2
  /// / ((2 f - 1) p) for a frequency f above 1/2 and q edges per sample, and at most their number. p
  /// is M (M - 1) for directions, where a reversed edge is false. With `connections` the frequency
  /// is `connected`, the edge may point either way, and p is M (M - 1) / 2. It holds for
  /// Resampling::halves if false edges are exchangeable and found no more often than by chance.
  /// Otherwise it is a guide.
  ///
  /// Source: Meinshausen, Buehlmann, "Stability selection", JRSS B 2010, theorem 1. Its proof needs
  /// numbers from 0 to 1 in each sample, so halves are right.
  double expected_false(double min_frequency = 0.9, bool connections = false) const;
};

/// Learns the graph of a table [n, M], float64 on the CPU, n >= 4, and of many samples of its rows.
/// `fit` has the options of causal_fit(); its seed is also that of the samples. With equal seeds
/// Python's nsimplex.causal.edge_confidence draws the same samples. They run at once on torch's
/// threads, and so fit.checkpoint must be safe to call from several.
///
/// An edge that most samples have does not depend on a few rows. That says nothing about errors
/// that all samples share: a wrong model, or an unobserved common cause. A direction is open in a
/// sample if an equally good graph of the same model has it the other way (CausalLimits::cpdag); but
/// models of curved effects tell it, and so do noises of one variance, interventions that set one
/// end, and `constraints`. If the variances of all columns are equal up to chance, as in a standardised
/// table, they tell no direction.
///
/// The interval of a weight belongs to the graph of all rows: the columns of each sample are
/// regressed on their causes in that graph. With `nonlinear` or `kinds` it is the range of the
/// weights that samples with this edge have. A column that is constant in a sample has no edges
/// there.
///
/// Complexity: `replicates` fits, and O(M^2 + edges replicates) memory besides.
///
/// Throws c10::ValueError and c10::TypeError that name the argument, the expectation and the value.
///
/// Sources: Friedman, Goldszmidt, Wyner, UAI 1999; Meinshausen, Buehlmann, JRSS B 2010; Shah,
/// Samworth, JRSS B 2013 (complementary pairs).
NSIMPLEX_API EdgeConfidence edge_confidence(const at::Tensor& table,
                                            const CausalFitOptions& fit = {},
                                            const EdgeConfidenceOptions& options = {});

/// The same for a graph [M, M] that causal_fit() has learned from this table with these options.
NSIMPLEX_API EdgeConfidence edge_confidence(const at::Tensor& table, const at::Tensor& graph,
                                            const CausalFitOptions& fit,
                                            const EdgeConfidenceOptions& options);

// Directions of edges by noise that is not Gaussian.

struct NoiseDirectionsOptions {
  double level = 0.01;  ///< of the test whether all noises are Gaussian
  EdgeConstraints constraints = {};
  /// Called between steps. It may throw to stop the search.
  std::function<void()> checkpoint = {};
  /// Asked between steps. Once it returns true, the search ends with the best graph so far, and
  /// NoiseDirections::interrupted is set.
  std::function<bool()> stop = {};
};

/// Reverses edges of an acyclic graph [M, M] while noise that is not Gaussian speaks for it. Entries
/// of the graph other than 0 are edges i -> j, such as the adjacency of causal_fit(). The table [n,
/// M] has linear effects, n >= 4, finite numbers and no constant column. Both are float64 on the
/// CPU.
///
/// Covariances do not tell the direction of every edge. In a linear model with independent noises of
/// which at most one is Gaussian, the noises do. The cost of a graph is
///
///     sum_j [ n log s_j^2 - 2 n J(e_j / s_j) + 2 log(n) p_j ]
///
/// with the residuals e_j, of deviation s_j, of column j regressed on its p_j causes and the
/// approximate negentropy J(u) = 79.047 (mean log cosh u - 0.37457)^2 + 7.4129 (mean u
/// exp(-u^2 / 2))^2. A step reverses one edge i -> j that no other path joins. Both columns may then
/// have the causes of either, and those are dropped whose absence lowers the Gaussian part of the
/// cost. After each sweep over the edges, every column may also gain causes. A step is kept if the
/// whole cost falls. With at most 50 columns, a second search starts from the order that the noises
/// of 300 rows suggest, as in DirectLiNGAM; the result of lower cost counts.
///
/// The noises of the right graph are independent. So the turned graph is the result only if at most
/// half as many pairs of its noises depend on each other as of the given graph, by the tests of
/// causal_limits() at the level 0.05, and if -2 log p summed over all pairs is smaller. Curved
/// effects and common causes outside the table keep noises dependent. Columns of at most 2 sqrt(n)
/// different values keep the directions of their edges, and there is no second start beside them.
///
/// If all noises are Gaussian, the sum of 2 n J is nearly a chi-squared variable of 2 M degrees of
/// freedom. If this sum is not significant, the graph keeps its edges.
///
/// The graph must satisfy `options.constraints`, as that of causal_fit() with the same constraints
/// does, and so does the result.
///
/// Complexity: O(n M^2 + M^3), and per edge and sweep O(n p + p^4) for at most p causes. The second
/// start takes O(300 M^3).
///
/// Throws c10::ValueError and c10::TypeError that name the argument, the expectation and the value.
///
/// Sources: Shimizu et al., JMLR 2006 and 2011 (LiNGAM, DirectLiNGAM); Hyvaerinen, NIPS 1998
/// (negentropy); Chickering, JMLR 2002 (reversals).
NSIMPLEX_API NoiseDirections orient_by_noise(const at::Tensor& table, const at::Tensor& graph,
                                             const NoiseDirectionsOptions& options = {});

// What a table cannot tell about a learned graph.

/// How far variances alone order the columns of a graph.
struct VarianceOrder {
  double varsortability;      ///< share of directed paths along which the variance rises
  int64_t shared = 0;         ///< edges that sorting by variance gives too
  int64_t edges = 0;          ///< all edges
  std::string evidence = {};  ///< a sentence if variances order the columns; else empty
};

/// Of a table [n, M] without constant columns and a graph [M, M], float64 on the CPU. NaN without
/// edges. Complexity: O(n M^2 + M^3).
NSIMPLEX_API VarianceOrder variance_order(const at::Tensor& table, const at::Tensor& graph);

struct CausalLimitsOptions {
  std::vector<std::string> names = {};  ///< of the columns, for the findings; none: x0, x1, ..
  double level = 0.05;                  ///< of the tests of noises
};

/// Facts about a graph of M columns that its adjacency does not show. Tensors are on the CPU.
struct CausalLimits {
  double bic;             ///< of the linear Gaussian model of the graph; smaller is better
  at::Tensor cpdag;       ///< bool [M, M]: [i, j] and [j, i] if the direction cannot be told
  at::Tensor reversible;  ///< int64 [k, 2]: cause and effect of edges that may be reversed
  VarianceOrder variances;
  at::Tensor dependent;  ///< int64 [k, 2]: columns with dependent noises, the surest first
  at::Tensor p_values;   ///< float64 [k]
  int64_t tests;         ///< number of pairs of noises tested
  std::vector<std::string> findings;  ///< all of it in sentences
};

/// Says what a table [n, M], n >= 4, cannot tell about an acyclic graph [M, M] of its columns. Both
/// are float64 on the CPU; entries other than 0 are edges i -> j.
///
/// - Direction. The completed partially directed graph (CPDAG) has the edges whose direction all
///   graphs share that linear Gaussian data cannot distinguish from this one. It comes from the
///   colliders of the graph by Meek's rules.
/// - Units. Varsortability near 1 means that units may have decided the order.
/// - Common causes outside the table. With the right graph, linear effects and no common cause
///   outside the table, the noises of all columns are independent. Each pair of residuals e_i, e_j
///   is tested: by the correlation of tanh(e_i) and tanh(e_j) if no edge joins them, and by the
///   correlations of f(e_i) and g(e_j), with f and g among tanh(2 e) and exp(-e^2 / 2), each minus
///   the multiple of tanh(e) that makes its mean slope 0. Such a correlation does not depend on
///   errors of the weights to first order. Holm's method aims at a probability of at most `level`
///   for one false finding. For edges between Gaussian columns this test has no power.
///
/// Complexity: O(n M^2 + M^3), and O(M^4) at worst for the CPDAG.
///
/// Throws c10::ValueError and c10::TypeError that name the argument, the expectation and the value.
///
/// Sources: Meek, UAI 1995; Chickering, JMLR 2002 (CPDAG); Reisach, Seiler, Weichwald, NeurIPS 2021
/// (varsortability); Shimizu et al., JMLR 2011 (independence of residuals); Holm 1979.
NSIMPLEX_API CausalLimits causal_limits(const at::Tensor& table, const at::Tensor& graph,
                                        const CausalLimitsOptions& options = {});

/// Chooses `screen` columns of a table [n, M] too wide for causal_fit(), before any graph is learned,
/// and returns their numbers, ascending, as int64. All columns are returned if there are no more.
///
/// By correlation, the score of column j is max over i != j of |r_ij|. There is then a bound that
/// no pair with a column left out exceeds, so that such a column has at most weak direct effects. An
/// effect that others cancel can be lost. By variance, the score is the variance of the column as
/// it is given; use it only for columns of one unit, such as logarithms of normalised expression.
/// Of equal scores, the column of the smaller number comes first.
///
/// The table is float64 on the CPU, with NaN for a missing value. The variance is that of the values
/// present, and in correlations the mean of the column takes the place of a gap. Complexity: O(n
/// M^2) time and O(n M) memory for correlation; O(n M) for variance.
///
/// Throws c10::ValueError and c10::TypeError that name the argument, the expectation and the value.
///
/// Source: Hero, Rajaratnam, "Large-scale correlation screening", JASA 2011.
NSIMPLEX_API at::Tensor screen_columns(const at::Tensor& table, int64_t screen,
                                       ScreenCriterion by = ScreenCriterion::correlation);

/// Compares causal graphs with a known one. Graphs are float64 [M, M] on the CPU, with finite
/// numbers. A_ij belongs to i -> j, and nonzero entries are edges. The diagonal is ignored. Errors
/// are c10::ValueError and c10::TypeError that name the argument. docs/causal/structure.md has the
/// definitions.

struct CausalMetrics {
  int64_t edges = 0, true_edges = 0;
  int64_t reversed = 0, extra = 0, missing = 0;
  int64_t shd = 0;             ///< structural Hamming distance; a reversed edge counts one
  std::optional<int64_t> sid;  ///< structural intervention distance; absent if a graph has a cycle
  double precision = 0, recall = 0, f1 = 0, fdr = 0;  ///< of directed edges; recall is TPR
};

/// Complexity: O(M (M + edges)).
///
/// Source: Peters, Buehlmann, "Structural intervention distance for evaluating causal graphs",
/// 2015.
NSIMPLEX_API CausalMetrics causal_metrics(const at::Tensor& graph, const at::Tensor& truth);

/// Areas under the curves of scores over all ordered pairs of different columns. Scores may be
/// infinite, but not NaN. The areas are NaN if the truth has no edges or all of them.
struct EdgeCurves {
  double auroc = 0, auprc = 0;
};
NSIMPLEX_API EdgeCurves edge_curves(const at::Tensor& scores, const at::Tensor& truth);

/// How well the scales of the columns reveal the causal order of a table [n, M]. 0.5 is chance; NaN
/// for a graph without edges. Complexity: O(n M^2 + M^3).
struct Sortability {
  double variance = 0;  ///< varsortability
  double r2 = 0;        ///< R2-sortability; it does not depend on units
};
NSIMPLEX_API Sortability causal_sortability(const at::Tensor& table, const at::Tensor& graph);

/// Baselines that use no causal information: `empty`, `variance_sort`, `r2_sort`, each with
/// coefficients and scores, float64 [M, M]. No column of the table [n, M] may be constant.
struct CausalBaseline {
  std::string name;
  at::Tensor adjacency, scores;
};
NSIMPLEX_API std::vector<CausalBaseline> causal_baselines(const at::Tensor& table);

/// A table and the graph that generated it.
struct CausalSimulation {
  at::Tensor table;    ///< float64 [observations, features]
  at::Tensor weights;  ///< float64 [features, features], A_ij of i -> j, a DAG
};

/// Draws a graph, a structural equation model on it, and observations of the model:
///
///     x_j = f_j(x_i : i -> j) + e_j
///
/// CausalMechanism defines f_j, and CausalNoise defines the distribution of e_j, which has mean 0.
/// do(x_j = v) sets x_j to v in every row and leaves all other equations unchanged. Two calls that
/// differ only in `interventions` draw the same model and the same noise for each row, so their
/// tables show the effect of the intervention on each single observation.
///
/// Equal seeds give the same result on every machine, up to the rounding of exp, log and cos.
/// Complexity: O(n (edges h + M)) with h = 1 for linear, 100 for mlp (hidden units) and 256 for
/// additive_gp (features).
///
/// Throws c10::ValueError that names the option: a number out of range, a graph with a cycle, an
/// intervention on a column that does not exist, or two on the same column. Graph and table have at
/// most 2^29 numbers each.
///
/// Source: the protocol of Zheng et al., "DAGs with NO TEARS", NeurIPS 2018, and "Learning sparse
/// nonparametric DAGs", AISTATS 2020.
NSIMPLEX_API CausalSimulation simulate_causal(const CausalSimulationOptions& options);

/// Simulates a given graph: float64 [M, M], nonzero entries are edges. Their weights are drawn
/// anew. `options.graph`, `nodes` and `degree` are not used.
NSIMPLEX_API CausalSimulation simulate_causal(const at::Tensor& graph,
                                              const CausalSimulationOptions& options);

}  // namespace nsimplex
