#include "equivariant/expressivity/colour_refinement.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "equivariant/expressivity/pair_relation.h"

namespace nsimplex::equivariant {
namespace {

using Signature = std::vector<uint64_t>;

struct SignatureHash {
  size_t operator()(const Signature& signature) const {
    size_t hash = signature.size();
    for (const uint64_t value : signature) hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
  }
};

// One number for each different signature.
class Palette {
 public:
  int32_t colour(const Signature& signature) {
    return numbers_.try_emplace(signature, static_cast<int32_t>(numbers_.size())).first->second;
  }
  size_t size() const { return numbers_.size(); }

 private:
  std::unordered_map<Signature, int32_t, SignatureHash> numbers_;
};

constexpr uint64_t join(int32_t first, int32_t second) {
  return static_cast<uint64_t>(first) << 32 | static_cast<uint32_t>(second);
}

// A graph and the colours of its nodes or pairs.
struct Coloured {
  int64_t nodes = 0;
  std::vector<int32_t> relation;  // [n, n]
  std::vector<int32_t> colours;   // [n] or [n, n]
};

Coloured begin(const io::SimpleGraph& graph, int64_t order) {
  Coloured coloured{graph.nodes, {}, {}};
  for (const PairRelation relation : pair_relations(graph)) {
    coloured.relation.push_back(static_cast<int32_t>(relation));
  }
  coloured.colours = order == 2 ? std::vector<int32_t>(graph.nodes, 0) : coloured.relation;
  return coloured;
}

// The old colour and the multiset that refines it; entry 0 of a signature is the former.
void sign_node(const Coloured& graph, int64_t node, Signature& signature) {
  const int64_t n = graph.nodes;
  for (int64_t w = 0; w < n; ++w) {
    signature[w + 1] = join(graph.relation[node * n + w], graph.colours[w]);
  }
}

void sign_pair(const Coloured& graph, int64_t pair, Signature& signature) {
  const int64_t n = graph.nodes, u = pair / n, v = pair % n;
  for (int64_t w = 0; w < n; ++w) {
    signature[w + 1] = join(graph.colours[u * n + w], graph.colours[w * n + v]);
  }
}

std::vector<int32_t> refined(const Coloured& graph, int64_t order, Palette& palette) {
  std::vector<int32_t> colours(graph.colours.size());
  Signature signature(graph.nodes + 1);
  for (size_t i = 0; i < colours.size(); ++i) {
    signature[0] = static_cast<uint64_t>(graph.colours[i]);
    const auto index = static_cast<int64_t>(i);
    order == 2 ? sign_node(graph, index, signature) : sign_pair(graph, index, signature);
    std::sort(signature.begin() + 1, signature.end());
    colours[i] = palette.colour(signature);
  }
  return colours;
}

std::vector<int64_t> number_kinds(const std::vector<Coloured>& graphs) {
  std::map<std::vector<int32_t>, int64_t> kinds;
  std::vector<int64_t> numbers;
  for (const Coloured& graph : graphs) {
    std::vector<int32_t> colours = graph.colours;
    std::sort(colours.begin(), colours.end());
    numbers.push_back(
        kinds.try_emplace(std::move(colours), static_cast<int64_t>(kinds.size())).first->second);
  }
  return numbers;
}

}  // namespace

std::vector<int64_t> refine_colours(std::span<const io::SimpleGraph> graphs, int64_t order,
                                    const std::function<void()>& between_rounds) {
  std::vector<Coloured> coloured;
  for (const io::SimpleGraph& graph : graphs) coloured.push_back(begin(graph, order));
  // Colours of all graphs are counted together: a round that adds none has found them all, since a
  // colour is only ever divided.
  for (size_t count = 0;;) {
    Palette palette;
    for (Coloured& graph : coloured) {
      if (between_rounds) between_rounds();
      graph.colours = refined(graph, order, palette);
    }
    if (palette.size() == count) return number_kinds(coloured);
    count = palette.size();
  }
}

}  // namespace nsimplex::equivariant
