#pragma once

#include "causal/structure/structure.h"

namespace nsimplex::causal {

/// Structure learning by a causal order where effects are any smooth function of their causes, with
/// noises of one variance added. As equal_variance_order(): the next column is the one of which
/// those placed leave least, now by HeldOutRegression. Of its predecessors, the 20 to which it
/// answers most are then left out one by one, the least first, and stay out where the log of what
/// is left on the rows held out rises by at most 0.02.
///
/// `weights` are root mean square slopes with the sign of the mean slope; `scores` are that rise
/// times n, where at least 0; pairs against the order have none.
///
/// Complexity: M + 20 M regressions, O(n f^2) each for f = 100 + M features.
Structure fit_nonlinear_order(TableView table, const CausalFitOptions& options);

}  // namespace nsimplex::causal
