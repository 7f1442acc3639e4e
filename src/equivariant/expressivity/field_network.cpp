// Evaluates random equivariant networks over a finite field to tell graphs apart.

#include "equivariant/expressivity/field_network.h"

#include <algorithm>
#include <utility>

#include "equivariant/expressivity/colour_refinement.h"

namespace nsimplex::equivariant {
namespace {

// The stride along each block; 0 if a tensor is constant along it.
using Strides = std::vector<int64_t>;

int64_t power(int64_t base, int64_t exponent) {
  return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

// Strides of the blocks of a pattern on its diagonal, where the axes of a block have one index.
Strides diagonal_strides(const Partition& pattern, int64_t nodes) {
  Strides strides(block_count(pattern), 0);
  for (size_t axis = 0; axis < pattern.size(); ++axis) {
    strides[pattern[axis]] += power(nodes, static_cast<int64_t>(pattern.size() - 1 - axis));
  }
  return strides;
}

// Strides of `blocks` blocks in a tensor whose axes are some of them, in this order.
Strides axis_strides(const std::vector<int8_t>& axes, int64_t blocks, int64_t nodes) {
  Strides strides(blocks, 0);
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    strides[axes[axis]] = power(nodes, static_cast<int64_t>(axes.size() - 1 - axis));
  }
  return strides;
}

// The only loop of the layer: to[t] += term(from[f]) for all indices of the blocks from `block` on,
// where t and f follow the strides.
template <class Term>
void accumulate(uint64_t* to, const Strides& to_strides, const uint64_t* from,
                const Strides& from_strides, int64_t nodes, const Term& term, size_t block = 0) {
  if (block == to_strides.size()) {
    *to = field::add(*to, term(*from));
    return;
  }
  const int64_t to_step = to_strides[block], from_step = from_strides[block];
  for (int64_t i = 0; i < nodes; ++i) {
    if (block + 1 == to_strides.size()) {
      uint64_t& target = to[i * to_step];
      target = field::add(target, term(from[i * from_step]));
    } else {
      accumulate(to + i * to_step, to_strides, from + i * from_step, from_strides, nodes, term,
                 block + 1);
    }
  }
}

constexpr auto kItself = [](uint64_t value) { return value; };

std::vector<uint64_t> contract(const Contraction& contraction, const FieldTensor& x) {
  std::vector<uint64_t> sums(power(x.nodes, std::ssize(contraction.kept)), 0);
  const int64_t blocks = block_count(contraction.input);
  accumulate(sums.data(), axis_strides(contraction.kept, blocks, x.nodes), x.values.data(),
             diagonal_strides(contraction.input, x.nodes), x.nodes, kItself);
  return sums;
}

// Where a term is added to an output: the diagonal of a pattern, and the blocks along which the
// term varies.
using Place = std::pair<Partition, std::vector<int8_t>>;

}  // namespace

FieldLayer::FieldLayer(int64_t inputs, int64_t outputs)
    : outputs_(outputs),
      diagrams_(all_partitions(inputs + outputs)),
      contractions_(contractions_of(diagrams_, inputs)) {}

std::vector<uint64_t> FieldLayer::weights(uint64_t seed) const {
  std::vector<uint64_t> weights;
  weights.reserve(diagrams_.size());
  for (size_t d = 0; d < diagrams_.size(); ++d) {
    weights.push_back(field::reduce(random_bits(seed, d)));
  }
  return weights;
}

FieldTensor FieldLayer::operator()(const FieldTensor& x, std::span<const uint64_t> weights) const {
  const int64_t n = x.nodes;
  std::map<Place, std::vector<uint64_t>> parts;
  for (const auto& [contraction, uses] : contractions_) {
    const std::vector<uint64_t> sums = contract(contraction, x);
    for (const ContractionUse& use : uses) {
      // The part has its blocks in ascending order, and the sums in the order of the input.
      std::vector<int8_t> blocks = use.images;
      std::sort(blocks.begin(), blocks.end());
      std::vector<uint64_t>& part = parts[{use.output, blocks}];
      part.resize(sums.size(), 0);
      const auto rank = std::ssize(blocks);
      std::vector<int8_t> own(rank), images(rank);
      for (int8_t axis = 0; axis < rank; ++axis) {
        own[axis] = axis;
        images[axis] = static_cast<int8_t>(std::ranges::lower_bound(blocks, use.images[axis]) -
                                           blocks.begin());
      }
      accumulate(
          part.data(), axis_strides(own, rank, n), sums.data(), axis_strides(images, rank, n), n,
          [weight = weights[use.diagram]](uint64_t v) { return field::multiply(weight, v); });
    }
  }
  FieldTensor y{outputs_, n, std::vector<uint64_t>(power(n, outputs_), 0)};
  for (const auto& [place, part] : parts) {
    const auto& [pattern, blocks] = place;
    accumulate(y.values.data(), diagonal_strides(pattern, n), part.data(),
               axis_strides(blocks, block_count(pattern), n), n, kItself);
  }
  return y;
}

namespace {

// Parts of a network with separate random numbers. The number of a layer is added to its part.
enum Part : uint64_t { kInputWeights, kInputMix, kReadoutWeights, kLayerWeights, kLayerMix };
constexpr uint64_t kLayerParts = 2;

uint64_t seed_of(const FieldNetworkOptions& options, Part part, int64_t layer = 0) {
  return random_bits(options.seed, part + kLayerParts * static_cast<uint64_t>(layer));
}

void mix_all(FieldTensor& x, uint64_t seed) {
  for (uint64_t& value : x.values) value = field::mix(seed, value);
}

// A random weight per relation of each pair of positions, followed by a non-linear function.
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

// Sums of this many products of two field elements fit into 128 bits.
constexpr int64_t kProducts = 32;

// x + w m_1(x) m_2(x), for matrices [n, n].
FieldTensor with_product(const FieldTensor& x, uint64_t seed) {
  enum Own : uint64_t { kFirst, kSecond, kWeight };
  const int64_t n = x.nodes;
  FieldTensor first = x, second = x, y = x;
  mix_all(first, random_bits(seed, kFirst));
  mix_all(second, random_bits(seed, kSecond));
  for (int64_t i = 0; i < n; ++i) {  // the transpose, whose rows are columns
    for (int64_t j = 0; j < i; ++j) std::swap(second.values[i * n + j], second.values[j * n + i]);
  }
  const uint64_t weight = field::reduce(random_bits(seed, kWeight));
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t* const row = first.values.data() + i * n;
    for (int64_t j = 0; j < n; ++j) {
      const uint64_t* const column = second.values.data() + j * n;
      uint64_t total = 0;
      for (int64_t begin = 0; begin < n; begin += kProducts) {
        unsigned __int128 sum = 0;
        for (int64_t k = begin; k < std::min(n, begin + kProducts); ++k) {
          sum += static_cast<unsigned __int128>(row[k]) * column[k];
        }
        const auto low = static_cast<uint64_t>(sum) & field::kPrime;
        const auto high = static_cast<uint64_t>(sum >> 61 & field::kPrime);
        total = field::add(total, field::add(low, high));
        total = field::add(total, static_cast<uint64_t>(sum >> 122));
      }
      uint64_t& entry = y.values[i * n + j];
      entry = field::add(entry, field::multiply(weight, total));
    }
  }
  return y;
}

int64_t count_distinct(std::vector<uint64_t> values) {
  std::sort(values.begin(), values.end());
  return std::unique(values.begin(), values.end()) - values.begin();
}

}  // namespace

FieldNetwork::FieldNetwork(const FieldNetworkOptions& options)
    : options_(options), layer_(options.order, options.order), readout_(options.order, 0) {}

FieldTensor FieldNetwork::next(const FieldTensor& x, int64_t layer) const {
  const uint64_t seed = seed_of(options_, kLayerWeights, layer);
  return options_.products ? with_product(x, seed) : layer_(x, layer_.weights(seed));
}

Fingerprint FieldNetwork::operator()(const io::SimpleGraph& graph,
                                     const std::function<void()>& between_layers) const {
  FieldTensor x = input(graph, options_);
  Fingerprint result{.distinct = count_distinct(x.values)};
  for (bool growing = true; growing || result.layers < options_.min_layers; ++result.layers) {
    if (between_layers) between_layers();
    x = next(x, result.layers);
    mix_all(x, seed_of(options_, kLayerMix, result.layers));
    const int64_t distinct = count_distinct(x.values);
    growing = distinct > result.distinct;
    result.distinct = distinct;
  }
  result.readout = readout_(x, readout_.weights(seed_of(options_, kReadoutWeights))).values[0];
  return result;
}

}  // namespace nsimplex::equivariant
