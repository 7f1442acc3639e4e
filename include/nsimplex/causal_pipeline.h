// The pipeline from a table to causal encodings.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal.h>
#include <nsimplex/causal_options.h>
#include <nsimplex/version.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace nsimplex {

/// Options of a CausalPipeline: the options of causal_fit(), edge_confidence(), causal_embed() and
/// causal_angles() that are saved with it.
struct CausalPipelineOptions {
  NSIMPLEX_CAUSAL_FIT_OPTIONS(NSIMPLEX_CAUSAL_FIELD)
  bool soft = false;                   ///< interventions are soft
  std::vector<ColumnKind> kinds = {};  ///< one per column of the table, or none
  /// In place of `kinds`: those of some columns, by name, or by number where no column has that name.
  /// The others are continuous.
  std::map<std::string, ColumnKind> kinds_by_name = {};
  bool orient_by_noise = false;  ///< orient_by_noise() turns edges of the fit
  MissingValues missing = MissingValues::refuse;
  bool drop = false;   ///< leave constant columns and copies out instead of refusing them
  int64_t screen = 0;  ///< keep this number of columns, by screen_columns(); 0: all
  ScreenCriterion screen_by = ScreenCriterion::correlation;
  int64_t dimension = 3;
  EmbeddingOptimiser optimiser = EmbeddingOptimiser::tangent;
  int64_t steps = 300;
  std::optional<double> learning_rate = {};
  std::optional<int64_t> hops = {};
  std::optional<AttractionSide> side = {};
  AttractionWeight weight = AttractionWeight::paths;
  double decay = 0.5;
  std::optional<int64_t> negatives = {};
  bool balanced = true;
  double generality = CausalEmbeddingOptions{}.generality;
  bool relative = true;
  double restart = 0.15;
  DanglingRule dangling = DanglingRule::uniform;
  double scale = 0.78539816339744831;
  bool by_dimension = false;
  int64_t confidence = 0;  ///< samples of edge_confidence(); 0: none
  Resampling resampling = Resampling::halves;
  /// leaves out edges that a smaller share of the samples has
  std::optional<double> min_frequency = {};
  int64_t seed = 0;
};

/// What is known of the rows of a table: CausalFitOptions::groups and targets, for all rows of the
/// table. Targets are numbers of the columns kept.
struct TableRows {
  std::vector<int64_t> groups = {};
  std::vector<std::vector<int64_t>> targets = {};
};

/// State of a pipeline after fit(). After embed() of a given graph it holds only that graph and its
/// points.
struct CausalPipelineState {
  std::vector<std::string> names;  ///< of the columns kept; empty if the table has no names
  std::vector<int64_t> columns;    ///< their numbers in the table
  std::string model;               ///< the model that the estimator chose
  at::Tensor mean, deviation;      ///< float64 [M], of the columns kept
  at::Tensor adjacency, scores;    ///< float64 [M, M]
  at::Tensor tangents;             ///< float64 [M, d]
  at::Tensor generality;           ///< float64 [M]
  /// What samples say about the graph before min_frequency. It is not saved.
  std::optional<EdgeConfidence> confidence = {};
};

/// Turns a table into rotary angles of its columns:
///
///     CausalPipeline pipeline({.dimension = 8});
///     pipeline.fit(table);                                  // structure, then embedding
///     const at::Tensor angles = pipeline.encode(4, 1);      // [1 + M, 4, 2], for rotary()
///     const at::Tensor values = pipeline.transform(other);  // the same columns, scaled as in fit
///     pipeline.save("genes.safetensors");
///
/// The files are the same as those of Python's nsimplex.causal.pipeline.CausalPipeline: each
/// language reads the other's.
///
/// Throws c10::ValueError and c10::TypeError that name the argument, the expectation and the value.
/// For files it throws InputError "cannot read FILE: WHY".
class NSIMPLEX_API CausalPipeline {
 public:
  explicit CausalPipeline(CausalPipelineOptions options = {}) : options_(std::move(options)) {}

  /// Learns the graph of a table [n, all columns], float64, with NaN for missing values, and embeds
  /// it. `names` are those of all columns, or none. Constraints refer to the columns kept.
  CausalPipeline& fit(const at::Tensor& table, std::vector<std::string> names = {},
                      const EdgeConstraints& constraints = {}, const TableRows& rows = {});

  /// The same for a file: csv, tsv, npy or npz.
  CausalPipeline& fit(const std::string& path, const EdgeConstraints& constraints = {},
                      const TableRows& rows = {});

  /// Embeds the learned graph again with changed options, or a given one [M, M] without a fit.
  CausalPipeline& embed(const std::optional<at::Tensor>& adjacency = std::nullopt);

  /// Angles of the columns in the form of causal_angles(): [leading + M, d], or [leading + M,
  /// heads, d / heads].
  at::Tensor encode(int64_t heads = 0, int64_t leading = 0) const;

  /// The kept columns of another table [n, all columns], float64. With `standardise` the means of
  /// the fit are subtracted and the columns are divided by the deviations of the fit. Missing
  /// values stay NaN.
  at::Tensor transform(const at::Tensor& table) const;

  /// Writes one safetensors file, either completely or not at all.
  void save(const std::string& path) const;
  static CausalPipeline load(const std::string& path);

  CausalPipelineOptions& options() { return options_; }
  const CausalPipelineOptions& options() const { return options_; }
  const CausalPipelineState& state() const { return state_; }

 private:
  CausalPipelineOptions options_;
  CausalPipelineState state_;
};

}  // namespace nsimplex
