#pragma once

#include <optional>
#include <string>

#include "causal/structure/linear_order.h"
#include "cli/output.h"

namespace nsimplex::cli {

/// Figures of one answer against a known graph; all null where none is known.
struct CausalScores {
  std::string name;
  int64_t edges = 0;
  Json figures;  ///< shd, sid, f1, .. by name, as the JSON of `causal fit` has them
};

/// `graph` is what is delivered, `scores` rank all pairs.
CausalScores score_graph(const std::string& name, const causal::Matrix& graph,
                         const causal::Matrix& scores, const std::optional<causal::Matrix>& truth);

/// shd, f1 and sid of weights cut at a threshold and made acyclic.
Json score_at_threshold(const causal::Matrix& weights, double threshold,
                        const causal::Matrix& truth);

/// A table of answers, one a row; without a truth their edges alone.
std::string table_of(const std::vector<CausalScores>& all, bool truth);

}  // namespace nsimplex::cli
