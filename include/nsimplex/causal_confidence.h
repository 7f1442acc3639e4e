#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal_options.h>
#include <nsimplex/version.h>

#include <cstdint>
#include <functional>
#include <optional>

/// How sure an edge is: the graph is learned again from many samples of the rows.
namespace nsimplex {

struct EdgeConfidenceOptions {
  int64_t replicates = 100;  ///< number of samples, 2 to 100,000
  Resampling resampling = Resampling::halves;
  double level = 0.95;  ///< of the intervals of weights
  /// Called after each sample with the number of samples fitted so far, by one thread at a time. It
  /// may throw to stop.
  std::function<void(int64_t done)> progress = {};
};

/// What samples of the rows say about a graph of M columns. Entry [i, j] is about i -> j. All
/// tensors are on the CPU.
struct NSIMPLEX_API EdgeConfidence {
  at::Tensor adjacency;    ///< float64 [M, M]: the graph of all rows
  at::Tensor frequencies;  ///< float64 [M, M]: share of the samples whose graph has the edge i -> j
  at::Tensor connected;    ///< float64 [M, M]: share whose graph has an edge in either direction
  at::Tensor ancestors;    ///< float64 [M, M]: share whose graph has a directed path from i to j
  at::Tensor low, high;    ///< float64 [M, M]: interval of the weight; NaN without an edge
  double edges;            ///< mean number of edges per sample
  int64_t replicates;      ///< number of samples

  /// The graph of all rows without the edges of a smaller frequency.
  at::Tensor stable(double min_frequency = 0.9) const;

  /// An upper bound of the expected number of false edges of at least this frequency: q^2 / ((2 f -
  /// 1) M (M - 1)) for a frequency f above 1/2 and q edges per sample. It holds for
  /// Resampling::halves if false edges are exchangeable and found no more often than by chance.
  /// Otherwise it is a guide.
  ///
  /// Source: Meinshausen, Buehlmann, "Stability selection", JRSS B 2010, theorem 1.
  double expected_false(double min_frequency = 0.9) const;
};

/// Learns the graph of a table [n, M], float64 on the CPU, n >= 4, and of many samples of its rows.
/// `fit` has the options of causal_fit(); its seed is also that of the samples. With equal seeds
/// Python's nsimplex.causal.edge_confidence draws the same samples. They run at once on torch's
/// threads, and so fit.checkpoint must be safe to call from several.
///
/// An edge that most samples have does not depend on a few rows. That says nothing about errors
/// that all samples share: a wrong model, an unobserved common cause, or a direction that no data of
/// this kind can tell.
///
/// The interval of a weight belongs to the graph of all rows: the columns of each sample are
/// regressed on their causes in that graph. With `nonlinear` or `kinds` it is the range of the
/// weights that samples with this edge have. A column that is constant in a sample has no edges
/// there.
///
/// Complexity: `replicates` fits, and O(M^2 + edges replicates) memory besides.
///
/// Throws c10::ValueError and c10::TypeError that name the argument, the expectation and the value.
///
/// Sources: Friedman, Goldszmidt, Wyner, UAI 1999; Meinshausen, Buehlmann, JRSS B 2010; Shah,
/// Samworth, JRSS B 2013 (complementary pairs).
NSIMPLEX_API EdgeConfidence edge_confidence(const at::Tensor& table,
                                            const CausalFitOptions& fit = {},
                                            const EdgeConfidenceOptions& options = {});

/// The same for a graph [M, M] that causal_fit() has learned from this table with these options.
NSIMPLEX_API EdgeConfidence edge_confidence(const at::Tensor& table, const at::Tensor& graph,
                                            const CausalFitOptions& fit,
                                            const EdgeConfidenceOptions& options);

}  // namespace nsimplex
