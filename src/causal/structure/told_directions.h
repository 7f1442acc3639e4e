// Declares which directions of a learned graph its data tell.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal.h>

namespace nsimplex::causal {

/// CausalFit::model of a graph whose edges orient_by_noise() has turned.
inline constexpr const char* kNoiseModel = "noise";

/// The completed partially directed graph of an acyclic graph, bool [M, M]: entry [i, j] is an edge
/// i -> j that some graph of the equivalence class has, so a pair of open direction has both
/// entries. `told`, bool [M, M] or undefined, marks edges whose direction is known in another way;
/// the class then has the graphs with these edges. Complexity: O(M^3), and O(M^4) at worst.
///
/// Source: Meek, "Causal inference and causal explanation with background knowledge", UAI 1995.
at::Tensor completed_graph(const at::Tensor& edges, const at::Tensor& told = {});

/// completed_graph() of what causal_fit() learned with these options, with the directions that the
/// model of the fit tells:
///
/// - noises of one variance in the units given, curved effects, and kNoiseModel: all of them
/// - linear effects and free variances: colliders and what follows from them, edges of which an
///   intervention set one end alone, and edges that the constraints direct
/// - kinds: besides, edges between columns of different kinds, and between counts. Two continuous
///   columns explain each other equally well, and so do two columns of binary values or categories
///
/// `scaled`: the columns have one variance, so that variances tell nothing.
at::Tensor told_graph(const CausalFit& fit, const CausalFitOptions& options, bool scaled);

/// Whether the columns of a table [n, M] have variances that differ by no more than chance, because
/// somebody has standardised them or effects hardly change them: the logarithms of Gaussian columns'
/// variances have the deviation sqrt(2 / n), and their range is at most five times that.
bool has_one_variance(const at::Tensor& table);

/// orient_by_noise() with errors that are InputError "ARGUMENT: ..".
NoiseDirections directions_by_noise(const at::Tensor& table, const at::Tensor& graph,
                                    const NoiseDirectionsOptions& options);

}  // namespace nsimplex::causal
