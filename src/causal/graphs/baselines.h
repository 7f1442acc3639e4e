#pragma once

#include <string>
#include <vector>

#include "causal/structure/structure.h"

namespace nsimplex::causal {

/// Answers that know nothing of causes, beside which an estimator's is to be read: the empty graph,
/// and columns sorted by variance or by R^2 on all others, each regressed on those before it,
/// chosen by the grow-shrink search and the BIC of the estimator `order`. Equal numbers keep the
/// columns' order.
///
/// Source: Reisach, Seiler, Weichwald, "Beware of the simulated DAG", NeurIPS 2021 (sortnregress,
/// there with a lasso); R^2: Reisach et al., NeurIPS 2023.
///
/// The table must be whole and no column constant. Complexity: O(n M^2 + M^3) and M answers of
/// ParentSearch for each order.
struct Baseline {
  std::string name;  ///< empty, variance_sort, r2_sort
  Structure structure;
};
std::vector<Baseline> baselines(TableView table);

}  // namespace nsimplex::causal
