// Declares what the estimator auto chooses for a table.

#pragma once

#include <nsimplex/causal.h>

#include <functional>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// A fit with the estimator auto. `fit` learns a graph of the table with the estimator order.
CausalFit automatic_fit(TableView table, const CausalFitOptions& options,
                        const std::function<CausalFit(const CausalFitOptions&)>& fit);

}  // namespace nsimplex::causal
