// Computes the lowest eigenpairs of the normalised Laplacian of a graph.

#include "graph/laplacian.h"

#include <cmath>

#include "graph/eigenpairs.h"

namespace nsimplex::graph {
namespace {

constexpr double kHighest = 2;  // no eigenvalue of a normalised Laplacian is larger

SparseMatrix laplacian(const Adjacency& graph, int64_t first, int64_t last) {
  std::vector<Eigen::Triplet<double>> entries;
  for (int64_t node = first; node < last; ++node) {
    const double degree = static_cast<double>(graph.degree(node));
    if (degree > 0) entries.emplace_back(node - first, node - first, 1.0);
    for (const int64_t other : graph[node]) {
      entries.emplace_back(node - first, other - first,
                           -1 / std::sqrt(degree * static_cast<double>(graph.degree(other))));
    }
  }
  SparseMatrix matrix(last - first, last - first);
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

// Rounding must not choose between entries of equal magnitude.
double sign_of(const Eigen::VectorXd& vector) {
  const double largest = vector.cwiseAbs().maxCoeff();
  for (const double entry : vector) {
    if (std::abs(entry) >= (1 - 1e-6) * largest) return entry < 0 ? -1 : 1;
  }
  return 1;
}

}  // namespace

Spectrum laplacian_spectrum(const Adjacency& graph, int64_t first, int64_t last, int64_t count) {
  const int64_t nodes = last - first;
  if (nodes == 0 || count == 0) return {};
  const Eigenpairs pairs = lowest_eigenpairs(laplacian(graph, first, last), count, kHighest);
  Spectrum spectrum{std::vector<double>(count), std::vector<double>(nodes * count)};
  for (int64_t i = 0; i < count; ++i) {
    const Eigen::VectorXd vector = pairs.vectors.col(i);
    const double sign = sign_of(vector);
    spectrum.values[i] = std::max(pairs.values[i], 0.0);
    for (int64_t node = 0; node < nodes; ++node) {
      spectrum.vectors[node * count + i] = sign * vector[node];
    }
  }
  return spectrum;
}

double laplacian_gap(const Adjacency& graph, int64_t first, int64_t last) {
  return second_eigenvalue(laplacian(graph, first, last), kHighest);
}

}  // namespace nsimplex::graph
