#include "causal/claims/placement.h"

#include <vector>

#include "causal/embedding/points.h"
#include "causal/graphs/paths.h"
#include "support/binary_metrics.h"
#include "support/rank_correlation.h"

namespace nsimplex::causal {

Placement placement_of(const Matrix& tangents, TableView graph) {
  const Points points(tangents);
  const int64_t nodes = points.count();
  std::vector<double> nearness;
  std::vector<uint8_t> joined;
  Paths paths(nodes);
  for (int64_t one = 0; one < nodes; ++one) {
    for (int64_t other = 0; other < nodes; ++other) {
      if (one != other && graph(one, other) != 0) paths.add({one, other});
      if (other <= one) continue;
      nearness.push_back(-points.distance(one, other));
      joined.push_back(graph(one, other) != 0 || graph(other, one) != 0);
    }
  }
  std::vector<double> radii, specificity;
  for (int64_t node = 0; node < nodes; ++node) {
    int64_t descendants = 0;
    for (int64_t other = 0; other < nodes; ++other) {
      descendants += other != node && paths.leads(node, other);
    }
    radii.push_back(points.radius(node));
    specificity.push_back(-static_cast<double>(descendants));
  }
  return {area_under_roc(nearness, joined), rank_correlation(radii, specificity)};
}

}  // namespace nsimplex::causal
