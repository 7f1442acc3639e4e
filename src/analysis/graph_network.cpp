// Evaluates a random network of equivariant encoders on a graph.

#include "analysis/graph_network.h"

#include <ATen/ATen.h>
#include <nsimplex/graph.h>

#include <algorithm>
#include <limits>

#include "equivariant/expressivity/colour_refinement.h"

namespace nsimplex::analysis {
namespace {

using at::Tensor;

constexpr double kMargin = 10;  // required ratio of a difference to rounding

double largest(const Tensor& values) { return values.abs().max().item<double>(); }

// [n^k, 2 (number of pairs)]: for every pair of positions, whether they are neighbours and whether
// they are equal.
Tensor features(const io::SimpleGraph& graph, int64_t order) {
  const int64_t n = graph.nodes;
  const auto relations = equivariant::pair_relations(graph);
  const Tensor kinds = at::empty({n, n}, at::kByte);
  std::transform(relations.begin(), relations.end(), kinds.mutable_data_ptr<uint8_t>(),
                 [](equivariant::PairRelation relation) { return static_cast<uint8_t>(relation); });
  std::vector<Tensor> channels;
  const std::vector<int64_t> all(order, n);
  for (int64_t a = 0; a < order; ++a) {
    for (int64_t b = a + 1; b < order; ++b) {
      for (const auto relation :
           {equivariant::PairRelation::neighbours, equivariant::PairRelation::equal}) {
        std::vector<int64_t> shape(order, 1);
        shape[a] = shape[b] = n;
        const Tensor pair = kinds.eq(static_cast<int64_t>(relation)).to(at::kDouble);
        channels.push_back(pair.view(shape).expand(all).flatten());
      }
    }
  }
  return at::stack(channels, 1);
}

}  // namespace

GraphNetwork::GraphNetwork(const GraphNetworkOptions& options) : options_(options) {
  const int64_t pairs = options.order * (options.order - 1) / 2;
  for (int64_t layer = 0; layer <= options.layers; ++layer) {
    EquivariantEncoderOptions own;
    own.attention.input = {.order = options.order};
    own.attention.output = {.order = layer < options.layers ? options.order : 0};
    own.attention.in_channels = layer == 0 ? 2 * pairs : options.channels;
    own.attention.out_channels = options.channels;
    own.attention.form = options.form;
    layers_.emplace_back(own);
    layers_.back()->to(at::kDouble);
    layers_.back()->eval();
  }
}

const GraphNetwork::Plans& GraphNetwork::plans(int64_t nodes) {
  const auto [place, fresh] = plans_.try_emplace(nodes);
  if (fresh) {
    const TupleBatch tuples =
        complete_tuples(at::full({1}, nodes, at::TensorOptions(at::kLong)), options_.order);
    place->second = {
        equivariant_encoder_plan(tuples, tuples, layers_.front()->options()),
        equivariant_encoder_plan(tuples, project_tuples(tuples, 0), layers_.back()->options())};
  }
  return place->second;
}

Tensor GraphNetwork::pass(const io::SimpleGraph& graph) {
  const at::NoGradGuard no_grad;
  const Plans& own = plans(graph.nodes);
  Tensor x = features(graph, options_.order);
  for (size_t layer = 0; layer + 1 < layers_.size(); ++layer) {
    x = layers_[layer]->forward(x, own.body);
  }
  return layers_.back()->forward(x, own.readout)[0];
}

GraphReadout GraphNetwork::operator()(const io::SimpleGraph& graph,
                                      const std::function<void()>& between) {
  if (between) between();
  GraphReadout readout{pass(graph)};
  // Relabelings may round alike by chance. One unit in the last place never counts as a difference.
  readout.rounding = std::numeric_limits<double>::epsilon() * largest(readout.values);
  for (int64_t r = 0; r < options_.relabelings; ++r) {
    if (between) between();
    const Tensor again =
        pass(equivariant::relabeled(graph, options_.seed + static_cast<uint64_t>(r)));
    readout.rounding = std::max(readout.rounding, largest(again - readout.values));
  }
  return readout;
}

bool told_apart(const GraphReadout& a, const GraphReadout& b) {
  return largest(a.values - b.values) > kMargin * std::max(a.rounding, b.rounding);
}

}  // namespace nsimplex::analysis
