#include "graph/generators.h"

#include <algorithm>

#include "kernels/common/tuple_hash.h"

namespace nsimplex::graph {
namespace {

// Numbers below a bound, from splitmix64 on a counter. The upper half of the product of a 64-bit
// number and the bound is uniform up to bound / 2^64.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(kernels::splitmix64(seed)) {}

  int64_t below(int64_t bound) {
    state_ += kernels::kGoldenGamma;
    const auto product = static_cast<unsigned __int128>(kernels::splitmix64(state_)) *
                         static_cast<unsigned __int128>(bound);
    return static_cast<int64_t>(product >> 64);
  }

 private:
  uint64_t state_;
};

}  // namespace

std::vector<int64_t> preferential_attachment(int64_t nodes, int64_t links, uint64_t seed) {
  std::vector<int64_t> edges;
  if (nodes <= links) return edges;
  edges.reserve(2 * links * (nodes - links));
  Draws draws(seed);
  std::vector<int64_t> targets;
  for (int64_t node = links; node < nodes; ++node) {
    targets.clear();
    // A uniform end of a uniform edge is a node in proportion to its links.
    const auto ends = static_cast<int64_t>(edges.size());
    while (static_cast<int64_t>(targets.size()) < links) {
      const int64_t target =
          node == links ? static_cast<int64_t>(targets.size()) : edges[draws.below(ends)];
      if (std::find(targets.begin(), targets.end(), target) == targets.end()) {
        targets.push_back(target);
      }
    }
    std::sort(targets.begin(), targets.end());
    for (const int64_t target : targets) edges.insert(edges.end(), {target, node});
  }
  return edges;
}

}  // namespace nsimplex::graph
