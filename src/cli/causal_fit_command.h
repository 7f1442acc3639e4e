#pragma once

#include <optional>
#include <string>

#include "causal/structure/linear_order.h"
#include "cli/output.h"

namespace nsimplex::cli {

/// Scores of one graph against a known one; all null if none is known.
struct CausalScores {
  std::string name;
  int64_t edges = 0;
  Json figures;  ///< shd, sid, f1, .. by name, as in the JSON of `causal fit`
};

/// `graph` is the result; `scores` rank all pairs.
CausalScores score_graph(const std::string& name, const causal::Matrix& graph,
                         const causal::Matrix& scores, const std::optional<causal::Matrix>& truth);

/// shd, f1 and sid of weights that are cut at a threshold and made acyclic.
Json score_at_threshold(const causal::Matrix& weights, double threshold,
                        const causal::Matrix& truth);

/// A table with one graph per row. Without a truth it shows only their edges.
std::string table_of(const std::vector<CausalScores>& all, bool truth);

}  // namespace nsimplex::cli
