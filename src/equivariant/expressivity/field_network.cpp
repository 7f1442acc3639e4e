#include "equivariant/expressivity/field_network.h"

#include <algorithm>

#include "equivariant/expressivity/pair_relation.h"
#include "equivariant/expressivity/prime_field.h"

namespace nsimplex::equivariant {
namespace {

// Parts of a network with random numbers of their own; those of layers are counted up.
enum Part : uint64_t { kInputWeights, kInputMix, kReadoutWeights, kLayerWeights, kLayerMix };
constexpr uint64_t kLayerParts = 2;

uint64_t seed_of(const FieldNetworkOptions& options, Part part, int64_t layer = 0) {
  return random_bits(options.seed, part + kLayerParts * static_cast<uint64_t>(layer));
}

void mix_all(FieldTensor& x, uint64_t seed) {
  for (uint64_t& value : x.values) value = field::mix(seed, value);
}

// A random weight for each relation of each pair of positions, one non-linear function behind.
FieldTensor input(const io::SimpleGraph& graph, const FieldNetworkOptions& options) {
  const uint64_t seed = seed_of(options, kInputWeights);
  const std::vector<PairRelation> relations = pair_relations(graph);
  const int64_t n = graph.nodes, k = options.order;
  int64_t rows = 1;
  for (int64_t p = 0; p < k; ++p) rows *= n;
  FieldTensor x{k, n, std::vector<uint64_t>(rows, 0)};
  std::vector<int64_t> tuple(k);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t rest = row;
    for (int64_t p = k - 1; p >= 0; --p) {
      tuple[p] = rest % n;
      rest /= n;
    }
    uint64_t weight = 0;
    for (int64_t a = 0; a < k; ++a) {
      for (int64_t b = a + 1; b < k; ++b, weight += kPairRelations) {
        const auto relation = static_cast<uint64_t>(relations[tuple[a] * n + tuple[b]]);
        x.values[row] =
            field::add(x.values[row], field::reduce(random_bits(seed, weight + relation)));
      }
    }
  }
  mix_all(x, seed_of(options, kInputMix));
  return x;
}

int64_t count_distinct(std::vector<uint64_t> values) {
  std::sort(values.begin(), values.end());
  return std::unique(values.begin(), values.end()) - values.begin();
}

}  // namespace

FieldNetwork::FieldNetwork(const FieldNetworkOptions& options)
    : options_(options), layer_(options.order, options.order), readout_(options.order, 0) {}

Fingerprint FieldNetwork::operator()(const io::SimpleGraph& graph,
                                     const std::function<void()>& between_layers) const {
  FieldTensor x = input(graph, options_);
  Fingerprint result{.distinct = count_distinct(x.values)};
  for (bool growing = true; growing || result.layers < options_.min_layers; ++result.layers) {
    if (between_layers) between_layers();
    x = layer_(x, layer_.weights(seed_of(options_, kLayerWeights, result.layers)));
    mix_all(x, seed_of(options_, kLayerMix, result.layers));
    const int64_t distinct = count_distinct(x.values);
    growing = distinct > result.distinct;
    result.distinct = distinct;
  }
  result.readout = readout_(x, readout_.weights(seed_of(options_, kReadoutWeights))).values[0];
  return result;
}

}  // namespace nsimplex::equivariant
