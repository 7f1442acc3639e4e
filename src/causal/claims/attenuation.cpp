#include "causal/claims/attenuation.h"

#include <cmath>

#include "causal/claims/ball_pairs.h"
#include "causal/claims/rotary_score.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

// One query, one key and one direction of gaps, as the paper's figure has them.
class FixedPair {
 public:
  explicit FixedPair(const AttenuationOptions& options)
      : random_(options.seed),
        query_(normal_vector(2 * options.planes, random_)),
        scale_(angle_scale(options.scale, options.by_dimension, options.planes)),
        drawn_(query_, normal_vector(2 * options.planes, random_), scale_),
        equal_(query_, query_, scale_),
        line_(random_direction(options.planes, random_)) {}

  AttenuationPoint operator()(double first, double second, double distance, double gap) const {
    return {first,
            second,
            distance,
            gap,
            drawn_.bound(gap) / drawn_.bound(0),
            equal_(gap * line_) / equal_.norms()};
  }

 private:
  RandomStream random_;
  Vector query_;
  double scale_;
  RotaryScore drawn_, equal_;
  Vector line_;
};

}  // namespace

std::vector<AttenuationPoint> attenuation_surface(const AttenuationOptions& options,
                                                  std::span<const double> norms,
                                                  std::span<const double> distances) {
  const FixedPair at(options);
  std::vector<AttenuationPoint> points;
  for (const double norm : norms) {
    for (const double distance : distances) {
      if (distance > 4 * std::atanh(norm)) continue;
      points.push_back(at(norm, norm, distance, gap_of(norm, norm, distance)));
    }
  }
  return points;
}

std::vector<AttenuationPoint> attenuation_path(const AttenuationOptions& options, double distance,
                                               int64_t points) {
  const FixedPair at(options);
  std::vector<AttenuationPoint> path;
  for (int64_t step = 0; step < points; ++step) {
    const double share = static_cast<double>(step) / static_cast<double>(points - 1);
    const double radius = 0.5 * distance * (1 - share);
    const double first = std::tanh(0.5 * radius), second = std::tanh(0.5 * (distance - radius));
    path.push_back(at(first, second, distance, first + second));
  }
  return path;
}

}  // namespace nsimplex::causal
