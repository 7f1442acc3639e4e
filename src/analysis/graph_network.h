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
  uint64_t seed = 1;  ///< of the relabelings; weights are torch's
};

/// What a network says of a graph, [channels], and by how much that changes where only the order of
/// the nodes does: the rounding of sums.
struct GraphReadout {
  at::Tensor values;
  double rounding = 0;
};

/// A network of encoders Enc_{k->k} and a readout Enc_{k->0} with random weights, in double, on the
/// relations (neighbours, equal) of all pairs of each k-tuple of nodes. Weights are as an encoder
/// draws them, layer norms keep values from fading.
///
/// It cannot tell apart what k-WL does not (see equivariant/expressivity), and may miss what
/// rounding hides.
class GraphNetwork {
 public:
  explicit GraphNetwork(const GraphNetworkOptions& options);

  /// `between`, where given, is called before every pass, to stop by an exception. The plan of each
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

/// Whether two graphs differ by more than ten times the rounding of either.
bool told_apart(const GraphReadout& a, const GraphReadout& b);

}  // namespace nsimplex::analysis
