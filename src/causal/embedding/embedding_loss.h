#pragma once

#include <nsimplex/causal_options.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "causal/embedding/neighbours.h"
#include "causal/embedding/points.h"
#include "causal/matrix.h"
#include "causal/task_loop.h"

namespace nsimplex::causal {

struct LossGradient {
  double loss = 0;  ///< the sum over nodes; Eq. 15 divides it by their number
  Matrix gradient;  ///< of the sum, by the tangent vectors [nodes, dimension]
};

/// How the pull to the origin grows with the distance from it, f. distance: r, as printed; its slope
/// does not end at the origin, where it holds every node that it outweighs. log_cosh: log cosh r,
/// the same less log 2 far out, but r^2 / 2 near the origin: stronger pulls bring nodes nearer, and
/// none into one point.
enum class PullShape { distance, log_cosh };

/// The loss of Eq. 15 to 17:
///
///     sum_m  sum_{n in N+(m)} -w_mn log(e^-d_mn / (e^-d_mn + S_m))  +  generality_m f(r_m),
///     S_m = (|N-| / |N- and C|) sum_{n in N-(m) and C} e^-d_mn,
///
/// with N-(m) all nodes but m and N+(m), and C the nodes that stand for all as negatives.
class ContrastiveLoss {
 public:
  /// `generality` [nodes]: how strongly each is drawn to the origin. Both outlive this.
  ContrastiveLoss(const Attraction& attraction, const Eigen::ArrayXd& generality,
                  PullShape shape = PullShape::distance)
      : attraction_(attraction), generality_(generality), shape_(shape) {}

  /// `negatives`: C, sorted; all nodes or some. Time O(nodes |C| dimension), memory O(nodes
  /// dimension).
  LossGradient operator()(const Points& points, const std::vector<int64_t>& negatives,
                          const TaskLoop& loop) const;

 private:
  struct Sums;
  void attract(const Points& points, int64_t node, const Points& negatives, Sums& sums) const;
  void differentiate(const Points& points, int64_t node, const Points& negatives, const Sums& sums,
                     Matrix& gradient) const;

  const Attraction& attraction_;
  const Eigen::ArrayXd& generality_;
  PullShape shape_;
};

/// Moves points, rows z = r u, against a gradient by z. One step moves a point no further than 1,
/// or its tangent coordinates by no more than a few learning rates, and to no radius beyond
/// kLargestRadius.
class PointOptimiser {
 public:
  virtual ~PointOptimiser() = default;
  virtual void step(Matrix& points, const Matrix& gradient, double learning_rate) = 0;
};

/// For [nodes, dimension] points.
std::unique_ptr<PointOptimiser> make_optimiser(EmbeddingOptimiser kind, int64_t nodes,
                                               int64_t dimension);

/// What a learning rate is where none is given.
double default_learning_rate(EmbeddingOptimiser kind);

}  // namespace nsimplex::causal
