#pragma once

#include <cstdint>
#include <optional>

#include "train/graph_task.h"

// What a pass over one large graph costs.
namespace nsimplex::training {

struct ScalingGraphOptions {
  int64_t nodes = 0;
  int64_t links = 5;  ///< of every node that is added, by preferential attachment
  int64_t node_channels = 16, edge_channels = 16;
  bool complete = false;  ///< all pairs of nodes, features of those that are no edges being zero
};

/// A graph of preferential attachment: input pairs in both directions with loops, normal features
/// in [node | edge] channels; output the graph as a whole. Everything comes from `seed`.
GraphBatch scaling_graph(const ScalingGraphOptions& options, uint64_t seed);

struct PassCost {
  double plan_seconds = 0.0;  ///< GraphModel::prepare
  double forward_seconds = 0.0;
  std::optional<double> backward_seconds;  ///< of passes that have one
  std::optional<int64_t> peak_bytes;       ///< beyond what was held before; where the system tells
};

/// One pass in training mode: prepare, forward, backward of the sum of the outputs. Gradients are
/// dropped afterwards. With `forward_only` nothing is kept for gradients, and none are made.
PassCost measure_pass(GraphModel& model, const GraphBatch& batch, bool forward_only = false);

/// The most memory this process holds since this was made, beyond what it held then:
/// resident pages, as Linux counts them. Freed memory that the allocator keeps is given back first.
/// One at a time.
class PeakMemory {
 public:
  PeakMemory();

  /// Bytes; absent where the system does not tell (another system, /proc not writable).
  std::optional<int64_t> bytes() const;

 private:
  std::optional<int64_t> before_;
};

}  // namespace nsimplex::training
