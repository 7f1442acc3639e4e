// Declares the spectrum of the normalised Laplacian.

#pragma once

#include "graph/adjacency.h"

namespace nsimplex::graph {

/// The lowest eigenvalues of a graph's normalised Laplacian and their vectors, ascending.
struct Spectrum {
  std::vector<double> values;   ///< [count]
  std::vector<double> vectors;  ///< [nodes, count], one row per node
};

/// The `count` (at most n) lowest eigenpairs of D^-1/2 (D - A) D^-1/2 on the nodes
/// `first` .. `last` - 1, which have no neighbours outside. A node without neighbours has a row of
/// zeros. In each vector the entry of largest magnitude is positive; among those within 1e-6 of it,
/// the first one counts. lowest_eigenpairs() describes the method and its time.
Spectrum laplacian_spectrum(const Adjacency& graph, int64_t first, int64_t last, int64_t count);

/// Only the second lowest eigenvalue. last - first >= 2, and the nodes are connected. See
/// second_eigenvalue().
double laplacian_gap(const Adjacency& graph, int64_t first, int64_t last);

}  // namespace nsimplex::graph
