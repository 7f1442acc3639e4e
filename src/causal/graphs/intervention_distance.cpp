#include <array>
#include <vector>

#include "causal/graphs/acyclic.h"
#include "causal/graphs/metrics.h"

namespace nsimplex::causal {
namespace {

// What the true graph says of interventions on one node, adjusted for a set Z. Z is right for (i,
// j) where no directed walk from i to j meets Z and Z blocks every other walk that does not come
// back to i; on walks, a collider is open where it is in Z itself.
class AdjustmentCheck {
 public:
  explicit AdjustmentCheck(const Matrix& truth)
      : causes_(causes_of(truth)), effects_(effects_of(truth)), adjusted_(causes_.size()) {}

  // How many j the adjustment of i for Z gets wrong.
  int64_t errors(int64_t cause, const std::vector<int64_t>& adjustment) {
    cause_ = cause;
    seen_.assign(causes_.size(), {});
    for (const int64_t node : adjustment) adjusted_[static_cast<size_t>(node)] = 1;
    for (const int64_t effect : effects_[static_cast<size_t>(cause)]) push(effect, kDirected);
    for (const int64_t parent : causes_[static_cast<size_t>(cause)]) push(parent, kUp);
    while (!open_.empty()) {
      const Walk walk = open_.back();
      open_.pop_back();
      go_on(walk);
    }
    int64_t count = 0;
    for (size_t node = 0; node < seen_.size(); ++node) {
      const std::array<bool, kKinds>& reached = seen_[node];
      const bool descends = reached[kDirected] || reached[kDirectedThroughSet];
      // A node of Z is taken for no descendant of i; any other for one that Z isolates.
      count += adjusted_[node] != 0
                   ? descends
                   : reached[kDirectedThroughSet] || reached[kUp] || reached[kDown];
    }
    for (const int64_t node : adjustment) adjusted_[static_cast<size_t>(node)] = 0;
    return count;
  }

 private:
  // Walks from i by their last edge: directed all the way, without Z before the end or with it, or
  // of another shape, their last edge against its direction (up) or along it (down), and open.
  enum Kind { kDirected, kDirectedThroughSet, kUp, kDown, kKinds };
  struct Walk {
    int64_t end;
    Kind kind;
  };

  void push(int64_t end, Kind kind) {
    bool& seen = seen_[static_cast<size_t>(end)][kind];
    if (end == cause_ || seen) return;
    seen = true;
    open_.push_back({end, kind});
  }

  void go_on(const Walk& walk) {
    const auto node = static_cast<size_t>(walk.end);
    const bool in_set = adjusted_[node] != 0;
    const auto down = [&](Kind kind) {
      for (const int64_t effect : effects_[node]) push(effect, kind);
    };
    const auto up = [&] {
      for (const int64_t parent : causes_[node]) push(parent, kUp);
    };
    if (walk.kind == kDirectedThroughSet) return down(kDirectedThroughSet);
    if (walk.kind == kDirected) down(in_set ? kDirectedThroughSet : kDirected);
    if (walk.kind == kUp) {
      if (in_set) return;
      up();
      return down(kDown);
    }
    if (in_set) return up();  // a collider
    if (walk.kind == kDown) down(kDown);
  }

  const Neighbours causes_, effects_;
  std::vector<char> adjusted_;
  std::vector<std::array<bool, kKinds>> seen_;
  std::vector<Walk> open_;
  int64_t cause_ = 0;
};

}  // namespace

std::optional<int64_t> intervention_distance(const Matrix& graph, const Matrix& truth) {
  if (!causal_order(graph) || !causal_order(truth)) return std::nullopt;
  const Neighbours adjustments = causes_of(graph);
  AdjustmentCheck check(truth);
  int64_t distance = 0;
  for (size_t node = 0; node < adjustments.size(); ++node) {
    distance += check.errors(static_cast<int64_t>(node), adjustments[node]);
  }
  return distance;
}

}  // namespace nsimplex::causal
