#pragma once

#include <string>

#include "causal/embedding/neighbours.h"
#include "causal/matrix.h"

namespace nsimplex::causal {

/// Nodes nearer to the origin, or to each other, than this turn by angles that nothing sees.
inline constexpr double kBlankRadius = 0.05;

/// Why points, rows of tangents, carry nothing, in one line: the graph has no edges, or most of its
/// nodes that have some lie at the origin, or all in one point. Empty where they do carry something.
std::string why_blank(const Matrix& tangents, const SparseGraph& graph);

/// The same of points without their graph.
std::string why_blank(const Matrix& tangents);

}  // namespace nsimplex::causal
