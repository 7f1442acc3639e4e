// Declares the options of `causal fit` and the report of its graph.

#pragma once

#include <nsimplex/causal.h>

#include <optional>
#include <string>
#include <vector>

#include "causal/matrix.h"
#include "cli/causal_table.h"
#include "cli/output.h"

namespace nsimplex::cli {

/// Options of `nsimplex causal fit`.
struct FitOptions : CommonOptions {
  CausalTableOptions table;
  ConstraintFlags constraints;
  std::string truth;
  /// What needs no table to be known: NSIMPLEX_CAUSAL_FIT_OPTIONS.
  CausalFitOptions fit;
  int64_t confidence = 0;
  Resampling resampling = Resampling::halves;
  std::optional<double> min_frequency;
  bool limits = false, orient_by_noise = false;
};

/// "CAUSE -> EFFECT" of edges int64 [k, 2].
std::vector<std::string> edge_names(const at::Tensor& edges, const std::vector<std::string>& names);

/// An edge of a learned graph.
struct FoundEdge {
  int64_t cause, effect;
  double weight, score;
};

/// How many edges a table in a terminal shows.
inline constexpr int64_t kShownEdges = 40;

/// "N more edges are in FILE" for edges that a table of kShownEdges leaves out; "" for none.
std::string more_edges_text(int64_t edges, const std::string& folder, const char* file);

/// Scores of one graph against a known one; all null if none is known.
struct CausalScores {
  std::string name;
  int64_t edges = 0;
  Json figures;  ///< shd, sid, f1, .. by name, as in the JSON of `causal fit`
};

/// The result of a fit and the baselines, as JSON and as text. Baselines and sortability take rows
/// as observations and columns as numbers, with gaps filled by means. An interrupted fit has no
/// baselines, which may take as long as the fit. What the constructor gets must outlive the report.
class FitReport {
 public:
  FitReport(const FitOptions& options, const CausalTable& table, const CausalFit& fit,
            std::optional<causal::Matrix> truth, Json read);

  Json json() const;
  std::string text() const;
  /// The edges, those of the highest score first.
  std::vector<FoundEdge> edges() const;
  /// The first of them as a table.
  std::string edges_text() const;
  const causal::Matrix& graph() const { return graph_; }
  const std::optional<causal::Matrix>& truth() const { return truth_; }

 private:
  const FitOptions& options_;
  const CausalTable& table_;
  const CausalFit& fit_;
  causal::Matrix graph_;
  std::optional<causal::Matrix> truth_;
  Json read_;
  std::vector<CausalScores> answers_;  ///< the estimator's first
  double varsortability_ = 0, r2_sortability_ = 0;
};

}  // namespace nsimplex::cli
