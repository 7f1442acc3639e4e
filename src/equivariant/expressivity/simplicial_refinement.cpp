// Refines colours of nodes as N-simplicial attention between neighbours does.

#include "equivariant/expressivity/simplicial_refinement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "equivariant/expressivity/colour_refinement.h"
#include "equivariant/expressivity/palette.h"

namespace nsimplex::equivariant {
namespace {

constexpr int64_t kMostOrder = 3;

// The colours of a tuple of neighbours, and the relations among its nodes.
using TupleColour = std::array<uint64_t, 2>;

struct Masked {
  std::vector<PairRelation> relation;            // [n, n]
  std::vector<std::vector<int32_t>> neighbours;  // of every node, in ascending order
  std::vector<int32_t> colours;                  // [n]

  int64_t nodes() const { return std::ssize(colours); }
  PairRelation between(int32_t i, int32_t j) const { return relation[i * nodes() + j]; }
};

std::vector<int64_t> degrees_of(const io::SimpleGraph& graph) {
  std::vector<int64_t> degrees(graph.nodes, 0);
  for (const int64_t node : graph.edges) ++degrees[node];
  return degrees;
}

Masked begin(const io::SimpleGraph& graph) {
  Masked masked{pair_relations(graph), {}, {}};
  const int64_t n = graph.nodes;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<int32_t>& own = masked.neighbours.emplace_back();
    for (int64_t j = 0; j < n; ++j) {
      if (masked.relation[i * n + j] == PairRelation::neighbours) {
        own.push_back(static_cast<int32_t>(j));
      }
    }
    masked.colours.push_back(static_cast<int32_t>(own.size()));
  }
  return masked;
}

// Collects the kinds of the tuples to which a node attends.
class TupleVisit {
 public:
  TupleVisit(const Masked& graph, const SimplicialRefinement& options,
             std::vector<TupleColour>& found)
      : graph_(graph), options_(options), found_(found) {}

  void visit(int64_t node) {
    neighbours_ = &graph_.neighbours[node];
    extend(0);
  }

 private:
  // Adds all tuples that begin with the nodes of tuple_.
  void extend(uint64_t pattern) {
    if (std::ssize(tuple_) == options_.order) return add(pattern);
    for (const int32_t node : *neighbours_) {
      uint64_t own = pattern;
      bool admitted = true;
      if (options_.mask != SimplicialMask::neighbours) {
        for (const int32_t other : tuple_) {
          const PairRelation relation = graph_.between(other, node);
          admitted &= relation == PairRelation::neighbours;
          own = own * kPairRelations + static_cast<uint64_t>(relation);
        }
      }
      if (options_.mask == SimplicialMask::cliques && !admitted) continue;
      tuple_.push_back(node);
      extend(own);
      tuple_.pop_back();
    }
  }

  // All patterns of cliques are equal.
  void add(uint64_t pattern) {
    std::array<int32_t, kMostOrder> colours{};
    std::transform(tuple_.begin(), tuple_.end(), colours.begin(),
                   [this](int32_t node) { return graph_.colours[node]; });
    found_.push_back(
        {join(static_cast<int32_t>(pattern), colours[0]), join(colours[1], colours[2])});
  }

  const Masked& graph_;
  const SimplicialRefinement& options_;
  std::vector<TupleColour>& found_;
  const std::vector<int32_t>* neighbours_ = nullptr;
  std::vector<int32_t> tuple_;
};

// The head that visits a tuple: tuples of one pattern have one head.
uint64_t head_of(uint64_t pattern_and_colour) { return pattern_and_colour >> 32; }

// Divides the numbers of the tuples of each head by their greatest common factor, for a head
// divides by the sum of its own weights.
void divide_per_head(Signature& signature) {
  for (size_t first = 1, next = 1; first < signature.size(); first = next) {
    uint64_t factor = 0;
    for (; next < signature.size() && head_of(signature[next]) == head_of(signature[first]);
         next += 3) {
      factor = std::gcd(factor, signature[next + 2]);
    }
    for (size_t at = first; at < next; at += 3) signature[at + 2] /= factor;
  }
}

// The old colour, and how often each kind of tuple occurs.
Signature signature_of(int32_t colour, std::vector<TupleColour>& found, SimplicialReduce reduce) {
  std::sort(found.begin(), found.end());
  Signature signature{static_cast<uint64_t>(colour)};
  for (size_t first = 0, next = 0; first < found.size(); first = next) {
    while (next < found.size() && found[next] == found[first]) ++next;
    signature.insert(signature.end(), {found[first][0], found[first][1], next - first});
  }
  if (reduce == SimplicialReduce::softmax) divide_per_head(signature);
  return signature;
}

}  // namespace

double tuples_of_neighbours(const io::SimpleGraph& graph, int64_t order) {
  double tuples = 0;
  for (const int64_t degree : degrees_of(graph)) {
    tuples += std::pow(static_cast<double>(degree), static_cast<double>(order));
  }
  return tuples;
}

std::vector<int64_t> refine_simplicial_colours(std::span<const io::SimpleGraph> graphs,
                                               const SimplicialRefinement& options,
                                               const std::function<void()>& between_nodes) {
  std::vector<Masked> masked;
  for (const io::SimpleGraph& graph : graphs) masked.push_back(begin(graph));
  std::vector<TupleColour> found;
  // The colours of all graphs are counted together. Colours are only ever divided, so the first
  // round without a new one is the last.
  for (size_t count = 0;;) {
    Palette palette;
    for (Masked& graph : masked) {
      TupleVisit visitor(graph, options, found);
      std::vector<int32_t> colours;
      for (int64_t node = 0; node < graph.nodes(); ++node) {
        if (between_nodes) between_nodes();
        found.clear();
        visitor.visit(node);
        colours.push_back(palette.colour(signature_of(graph.colours[node], found, options.reduce)));
      }
      graph.colours = std::move(colours);
    }
    if (palette.size() == count) break;
    count = palette.size();
  }
  std::vector<std::vector<int32_t>> colours;
  colours.reserve(masked.size());
  for (Masked& graph : masked) colours.push_back(std::move(graph.colours));
  return number_kinds(colours);
}

}  // namespace nsimplex::equivariant
