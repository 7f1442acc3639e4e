// Declares tests of the effect of noise on attention scores, and how well an embedding shows a
// graph.

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/statement.h"
#include "causal/matrix.h"

namespace nsimplex::causal {

/// How well an embedding shows a graph, as Fig. 3 of Xu et al., arXiv 2509.16629, claims.
struct Placement {
  /// probability that a pair with an edge is nearer than one without; ties count half
  double edge_area;
  double generality_correlation;  ///< Spearman's, of radius and -(number of descendants)
};

/// tangents [M, d]; graph [M, M], with nonzero entries as edges. NaN if a value is undefined: no
/// edges or all, equal numbers of descendants. O(M^2 (d + log M) + M^2 edges / 64).
Placement placement_of(const Matrix& tangents, TableView graph);

/// Tests the statements on noise of points and attention scores in section A.6 of Xu et al., arXiv
/// 2509.16629. Plain C++, one thread.
///
/// Noise with deviation sigma is added to each coordinate of both points e. The gap's noise
/// therefore has the variance 2 sigma^2, and angles turn by c times it. The mean score is exp(-c^2
/// sigma^2) A for any number of draws.

struct RobustnessOptions {
  int64_t planes = 64;                 ///< d: coordinates of a point
  double scale = 0.78539816339744831;  ///< c
  bool by_dimension = false;           ///< c sqrt(d)
  std::vector<double> sigmas{0.1, 0.2, 0.3};
  int64_t pairs = 20;         ///< number of queries with keys and points
  int64_t draws = 4000;       ///< of the noise of a pair, or of the features of a pair (Prop. A.8)
  int64_t repetitions = 100;  ///< of an average of noisy scores (Fig. S3)
  uint64_t seed = 1;
  std::function<void(int64_t done)> checkpoint = {};  ///< after each step of robustness_steps()
};

/// The number of steps that robustness() reports.
int64_t robustness_steps(const RobustnessOptions& options);

/// Fig. S1: exp(-(sigma_m^2 + sigma_n^2) / 2), and the same from draws, E cos of the noise.
struct Accuracy {
  double first, second;  ///< sigma_m, sigma_n, of angles
  double exact, drawn;
};

/// Fig. S3: xi_N, the average of N noisy scores minus the score, over the repetitions.
struct Bias {
  double sigma;
  int64_t noises;  ///< N
  bool equal;      ///< key = query, so that the score is large
  double score;    ///< A
  double mean, deviation;
  double limit;  ///< (exp(-c^2 sigma^2) - 1) A
};

/// Prop. A.8 for one pair: the expected difference between the scores of a noisy copy of a feature
/// and of another feature.
struct Distinction {
  double with_sine, without_sine;  ///< closed forms: complete, and as in the proof
  double drawn, error;             ///< mean over draws and its standard error
};

struct Robustness {
  std::vector<Accuracy> accuracies;
  std::vector<Bias> biases;
  std::vector<Distinction> distinctions;
  std::vector<analysis::Statement> claims;
};

/// Complexity: O(planes (pairs draws + repetitions N)), where N of the last test of Prop. A.10 is
/// the number that brings its bound to 1 %.
Robustness robustness(const RobustnessOptions& options);

}  // namespace nsimplex::causal
