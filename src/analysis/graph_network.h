// Declares random networks of equivariant encoders, which tell graphs apart.

#pragma once

#include <nsimplex/equivariant_layers.h>

#include <functional>
#include <map>
#include <vector>

#include "io/graph_formats.h"

namespace nsimplex::analysis {

struct GraphNetworkOptions {
  int64_t order = 3;  ///< k: tuples are all of [n]^k; 2 or 3
  AttentionForm form = AttentionForm::softmax;
  int64_t layers = 5;
  int64_t channels = 4;
  int64_t relabelings = 3;
  uint64_t seed = 1;  ///< of the relabelings; weights use torch's generator
};

/// The output of a network for a graph, [channels], and the amount by which it changes if only the
/// order of the nodes changes: the rounding of sums.
struct GraphReadout {
  at::Tensor values;
  double rounding = 0;
};

/// A network of encoders Enc_{k->k} and a readout Enc_{k->0} with random weights, in double. Its
/// inputs are the relations (neighbours, equal) of all pairs of each k-tuple of nodes. Weights are
/// drawn like an encoder's; layer norms keep values from vanishing.
///
/// It cannot distinguish graphs that k-WL does not distinguish (see equivariant/expressivity), and
/// it may miss differences that rounding hides.
class GraphNetwork {
 public:
  explicit GraphNetwork(const GraphNetworkOptions& options);

  /// `between`, if given, is called before every pass and may throw to stop. The plan of each
  /// number of nodes is kept.
  GraphReadout operator()(const io::SimpleGraph& graph, const std::function<void()>& between = {});

 private:
  struct Plans {
    EquivariantEncoderPlan body, readout;
  };

  const Plans& plans(int64_t nodes);
  at::Tensor pass(const io::SimpleGraph& graph);

  GraphNetworkOptions options_;
  std::vector<EquivariantEncoder> layers_;  // the readout is the last
  std::map<int64_t, Plans> plans_;
};

/// Whether two graphs differ by more than ten times the rounding error of either.
bool told_apart(const GraphReadout& a, const GraphReadout& b);

}  // namespace nsimplex::analysis
