// Declares the time and memory of a pass over one large graph.

#pragma once

#include <cstdint>
#include <optional>

#include "lab/graphs/graph_task.h"

// The cost of a pass over one large graph.
namespace nsimplex::training {

struct ScalingGraphOptions {
  int64_t nodes = 0;
  int64_t links = 5;  ///< of every new node, by preferential attachment
  int64_t node_channels = 16, edge_channels = 16;
  bool complete = false;  ///< all pairs of nodes, with zero features for those that are not edges
};

/// A graph of preferential attachment. Input: pairs in both directions with loops, and normal
/// features in [node | edge] channels. Output: the graph as a whole. Everything comes from `seed`.
GraphBatch scaling_graph(const ScalingGraphOptions& options, uint64_t seed);

struct PassCost {
  double plan_seconds = 0.0;  ///< GraphModel::prepare
  double forward_seconds = 0.0;
  std::optional<double> backward_seconds;  ///< for passes that have one
  /// above the memory held before; absent if the system does not tell
  std::optional<int64_t> peak_bytes;
};

/// One pass in training mode: prepare, forward, backward of the sum of the outputs. Gradients are
/// dropped afterwards. With `forward_only` nothing is kept for gradients, and none are made.
PassCost measure_pass(GraphModel& model, const GraphBatch& batch, bool forward_only = false);

/// Measures the peak memory of this process since this object was made, above the memory held then:
/// resident pages, as Linux counts them. Freed memory that the allocator keeps is returned first.
/// Only one object may live at a time.
class PeakMemory {
 public:
  PeakMemory();

  /// Bytes; absent if the system does not tell (another system, /proc not writable).
  std::optional<int64_t> bytes() const;

 private:
  std::optional<int64_t> before_;
};

}  // namespace nsimplex::training
