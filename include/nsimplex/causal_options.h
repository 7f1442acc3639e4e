// The options of learning and embedding a causal graph.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace nsimplex {

/// Estimators of a causal graph from a table; docs/causal/structure.md compares them. automatic:
/// order, with the kinds of the columns, curves and directions by noise that the table calls for.
enum class StructureEstimator {
  automatic,
  order,
  logdet,
  paper,
  lowrank,
  notears,
  spectral,
  paper_lowrank
};

/// How to treat rows of a table with missing values. refuse: an error that names the first one.
/// rows: leave these rows out. means: replace the value by the mean of its column. likelihood: keep
/// the gaps; the linear estimator `order` uses all values that are present.
enum class MissingValues { refuse, rows, means, likelihood };

/// The regression of a column on its causes. continuous: linear. binary (two values) and category
/// (at most 30 values, in any order): a multinomial logit. count: negative binomial with a log link.
enum class ColumnKind { continuous, binary, count, category };

/// How a screening chooses the columns of a wide table. correlation: those with the largest absolute
/// correlation with any other column. variance: those of the largest variance, in the units given.
enum class ScreenCriterion { correlation, variance };

/// The edge cause -> effect between columns of the table, by number.
struct CausalEdge {
  int64_t cause, effect;
  bool operator==(const CausalEdge&) const = default;
};

/// Prior knowledge about the graph.
struct EdgeConstraints {
  std::vector<CausalEdge> forbidden = {};
  std::vector<CausalEdge> required = {};
  /// One number per column, or empty. A column of a later tier never causes one of an earlier tier.
  std::vector<int64_t> tiers = {};
  std::vector<int64_t> exogenous = {};  ///< columns that no column causes
  std::vector<int64_t> sinks = {};      ///< columns that cause no column
  /// Directed paths that the graph must have, from cause to effect. One that a fit does not find
  /// becomes a required edge, and the fit is repeated.
  std::vector<CausalEdge> paths = {};
  bool operator==(const EdgeConstraints&) const = default;
};

/// The options of a fit that are the same for every table: type, name, default, flag of the command
/// line, meaning, and the estimators that use the option (none: all). This is the one list of them
/// in C++. The fields of CausalFitOptions and CausalPipelineOptions follow from it, the arguments of
/// the operators and their checks, the flags of `nsimplex causal fit`, and the file of a pipeline. A
/// number that is not a count is finite and at least 0, and a count is at least 1.
#define NSIMPLEX_CAUSAL_FIT_OPTIONS(OPTION)                                                        \
  OPTION(StructureEstimator, estimator, StructureEstimator::automatic, "--estimator",              \
         "Estimator: auto (order with the options that the table calls for), order, logdet, "      \
         "paper, paper-lowrank, lowrank, notears, spectral")                                       \
  OPTION(bool, nonlinear, false, "--nonlinear", "Use nonlinear regressions (auto, order, logdet)", \
         automatic, order, logdet)                                                                 \
  OPTION(bool, standardise, false, "--standardise",                                                \
         "Divide columns by their standard deviation first, so that units do not matter")          \
  OPTION(std::optional<double>, threshold, {}, "--threshold",                                      \
         "Leave out edges with a smaller |weight|; default: 0.2, and no limit for auto and order") \
  OPTION(std::optional<double>, sparsity, {}, "--sparsity",                                        \
         "Penalty on the sizes of weights (l1 norm): the larger, the fewer edges. Each "           \
         "estimator has its own default",                                                          \
         logdet, paper, paper_lowrank, lowrank, notears, spectral)                                 \
  OPTION(int64_t, rank, 40, "--rank",                                                              \
         "Rank of the weight matrix that lowrank and paper-lowrank learn", lowrank, paper_lowrank) \
  OPTION(bool, sample, false, "--sample-latents",                                                  \
         "For paper and paper-lowrank: sample latent variables instead of using their means",      \
         paper, paper_lowrank)

#define NSIMPLEX_CAUSAL_FIELD(type, name, initial, ...) type name = initial;

struct CausalFitOptions {
  NSIMPLEX_CAUSAL_FIT_OPTIONS(NSIMPLEX_CAUSAL_FIELD)
  int64_t seed = 0;
  EdgeConstraints constraints = {};
  /// Called between steps. It may throw to stop the fit.
  std::function<void()> checkpoint = {};
  /// auto, order, spectral: asked between steps. Once it returns true, the fit ends with the best graph so
  /// far, and CausalFit::interrupted is set.
  std::function<bool()> stop = {};
  /// One number per row, or empty: the group or batch of the row. Every column is centred within
  /// groups, so that a regression does not see effects of groups; their degrees of freedom are
  /// paid for.
  std::vector<int64_t> groups = {};
  /// auto, order: the columns that were intervened on in each row, or empty. A perfect intervention
  /// sets a column from outside, so that the row says nothing about the causes of that column.
  std::vector<std::vector<int64_t>> targets = {};
  /// Interventions keep the causes of a column and change its intercept and its noise variance.
  bool soft = false;
  /// order: one kind per column, or empty for continuous columns alone. auto: empty for the kinds that
  /// the values suggest.
  std::vector<ColumnKind> kinds = {};
  /// Let orient_by_noise() turn edges of the graph. It needs linear effects and continuous columns
  /// without gaps, in one group and without interventions.
  bool orient_by_noise = false;
  /// refuse, or likelihood. A table is made whole before (usable_table).
  MissingValues missing = MissingValues::refuse;
  /// One name per column, by which errors call it, or empty: they have its number.
  std::vector<std::string> names = {};
};

/// How samples of the rows are drawn. halves: half of the rows without replacement, in complementary
/// pairs. bootstrap: as many rows as the table has, with replacement.
enum class Resampling { halves, bootstrap };

/// Optimisers of the points; docs/causal/embedding.md compares them.
enum class EmbeddingOptimiser {
  rsgd,    ///< Riemannian gradient descent, Eq. 19 to 21
  radam,   ///< Riemannian Adam: first moment carried along geodesics, one second moment per point
  tangent  ///< Adam on the points' tangent vectors at the origin
};

/// Weights of attracting pairs. paths: P_mn + P_nm of P = sum over h <= hops of decay^(h-1) |A|^h.
/// direct: |A_mn|, so that indirect effects attract with weight 0.
enum class AttractionWeight { paths, direct };

/// N+(m), the nodes that attract m. both: nodes that a directed path of at most `hops` edges
/// connects with m in either direction. causes: nodes from which such a path leads to m. All other
/// nodes repel.
enum class AttractionSide { both, causes };

/// How a walk from effects to causes continues at a node without causes. uniform: it goes on to a
/// random node. eigenvector: it ends, and the leading eigenvector of the remaining matrix is used.
enum class DanglingRule { uniform, eigenvector };

struct CausalEmbeddingOptions {
  int64_t dimension = 3;
  EmbeddingOptimiser optimiser = EmbeddingOptimiser::tangent;
  int64_t steps = 300;
  /// Decays along a half cosine to a hundredth. Unset: 1 for tangent, 0.3 for radam, 0.1 for rsgd.
  std::optional<double> learning_rate = {};

  std::optional<int64_t> hops = {};         ///< unset: 1 for a hierarchy, 2 otherwise
  std::optional<AttractionSide> side = {};  ///< unset: causes for a hierarchy, else both
  AttractionWeight weight = AttractionWeight::paths;
  double decay = 0.5;
  /// The number of nodes that represent all nodes as negatives, drawn anew in each step. 0: all
  /// nodes. Unset: all up to 2,000 nodes, 512 beyond.
  std::optional<int64_t> negatives = {};

  /// Removes the units of nodes and the common size from |A| first, as docs/causal/embedding.md
  /// describes. false: uses |A| as given.
  bool balanced = true;

  /// lambda_g. 0.7 keeps mean rank and MAP within a tenth of the best strength on the graphs of
  /// docs/causal/embedding.md, small and large, dense and sparse. It also keeps the radii in the
  /// order of effects.
  double generality = 0.7;
  /// lambda_g multiplies sqrt(W_m W) M pi_m log cosh r_m, which has as much weight as the node's
  /// pairs and vanishes at the origin. false: pi_m r_m, as printed.
  bool relative = true;
  double restart = 0.15;  ///< w of Eq. 18
  DanglingRule dangling = DanglingRule::uniform;

  int64_t seed = 0;
  /// Called before every step with its number. It may throw to stop the embedding.
  std::function<void(int64_t step)> checkpoint = {};
};

/// Random DAGs with `degree` edges per node.
enum class CausalGraph {
  erdos_renyi,  ///< Erdos-Renyi ER-k: k M edges, at most M (M - 1) / 2, drawn from all pairs
  scale_free    ///< SF-k: Barabasi and Albert's growth by k links a node, k (M - k) edges
};

/// Mechanisms f_j of x_j = f_j(causes) + noise. Weights w are uniform in +-[weight_low,
/// weight_high].
enum class CausalMechanism {
  linear,      ///< sum_i w_ij x_i
  mlp,         ///< w2 . sigmoid(W1 x_causes), 100 hidden units
  additive_gp  ///< sum_i g_ij(x_i), each g_ij of a Gaussian process with kernel exp(-(x-y)^2/2)
};

/// Distributions of noise, all with mean 0.
enum class CausalNoise { gaussian, exponential, gumbel };

/// do(x_feature = value).
struct Intervention {
  int64_t feature;
  double value;
};

struct CausalSimulationOptions {
  CausalGraph graph = CausalGraph::erdos_renyi;
  int64_t nodes = 10;
  int64_t degree = 2;
  int64_t observations = 1000;
  CausalMechanism mechanism = CausalMechanism::linear;
  CausalNoise noise = CausalNoise::gaussian;
  /// Every noise has the standard deviation 1. false: each has its own, uniform in [0.5, 2].
  bool equal_variances = true;
  double weight_low = 0.5, weight_high = 2.0;
  int64_t seed = 0;         ///< of graph, weights and functions
  int64_t sample_seed = 0;  ///< of the noise, together with `seed`
  std::vector<Intervention> interventions = {};
};

}  // namespace nsimplex
