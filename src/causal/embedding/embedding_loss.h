// Declares the loss of a hyperbolic embedding and its optimisers.

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
  Matrix gradient;  ///< of the sum, with respect to the tangent vectors [nodes, dimension]
};

/// The pull to the origin, f, as a function of the distance. distance: r, as printed. Its slope
/// does not vanish at the origin, so every node that it outweighs collapses there. log_cosh: log
/// cosh r, which is r - log 2 far out but r^2 / 2 near the origin. Stronger pulls bring nodes
/// nearer, but none into one point.
enum class PullShape { distance, log_cosh };

/// The loss of Eq. 15 to 17:
///
///     sum_m  sum_{n in N+(m)} -w_mn log(e^-d_mn / (e^-d_mn + S_m))  +  generality_m f(r_m),
///     S_m = (|N-| / |N- and C|) sum_{n in N-(m) and C} e^-d_mn,
///
/// where N-(m) is all nodes but m and N+(m), and C the nodes that represent all as negatives.
class ContrastiveLoss {
 public:
  /// `generality` [nodes]: the strength with which each is drawn to the origin. Both must outlive
  /// this object.
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

/// Moves points, rows z = r u, against a gradient with respect to z. One step moves a point at most
/// by 1, or its tangent coordinates at most by a few learning rates, and never beyond
/// kLargestRadius.
class PointOptimiser {
 public:
  virtual ~PointOptimiser() = default;
  virtual void step(Matrix& points, const Matrix& gradient, double learning_rate) = 0;
};

/// For [nodes, dimension] points.
std::unique_ptr<PointOptimiser> make_optimiser(EmbeddingOptimiser kind, int64_t nodes,
                                               int64_t dimension);

/// The default learning rate.
double default_learning_rate(EmbeddingOptimiser kind);

}  // namespace nsimplex::causal
