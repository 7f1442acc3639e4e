#include "causal/graphs/repair.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace nsimplex::causal {
namespace {

// Which columns paths lead to from each column, itself included, as rows of bits.
class Reached {
 public:
  explicit Reached(int64_t features)
      : words_((features + 63) / 64), bits_(static_cast<size_t>(features * words_), 0) {
    for (int64_t column = 0; column < features; ++column) {
      bits_[word(column, column)] |= bit(column);
    }
  }

  bool reaches(int64_t from, int64_t to) const { return (bits_[word(from, to)] & bit(to)) != 0; }

  void add(const CausalEdge& edge, int64_t features) {
    if (reaches(edge.cause, edge.effect)) return;
    for (int64_t column = 0; column < features; ++column) {
      if (!reaches(column, edge.cause)) continue;
      for (int64_t k = 0; k < words_; ++k) {
        bits_[static_cast<size_t>(column * words_ + k)] |=
            bits_[static_cast<size_t>(edge.effect * words_ + k)];
      }
    }
  }

 private:
  size_t word(int64_t from, int64_t to) const {
    return static_cast<size_t>(from * words_ + to / 64);
  }
  static uint64_t bit(int64_t to) { return uint64_t{1} << (to % 64); }

  int64_t words_;
  std::vector<uint64_t> bits_;
};

}  // namespace

std::vector<CausalEdge> repair_cycles(Matrix& weights, const AllowedEdges& edges) {
  const int64_t features = weights.rows();
  struct Weighted {
    bool optional;
    double weakness;  // -|weight|
    CausalEdge edge;
  };
  std::vector<Weighted> all;
  for (int64_t cause = 0; cause < features; ++cause) {
    for (int64_t effect = 0; effect < features; ++effect) {
      const double weight = weights(cause, effect);
      if (weight == 0) continue;
      all.push_back({!edges.required(cause, effect), -std::abs(weight), {cause, effect}});
    }
  }
  const auto key = [](const Weighted& each) {
    return std::tuple(each.optional, each.weakness, each.edge.cause, each.edge.effect);
  };
  std::sort(all.begin(), all.end(),
            [&](const Weighted& a, const Weighted& b) { return key(a) < key(b); });
  Reached reached(features);
  std::vector<CausalEdge> removed;
  for (const Weighted& each : all) {
    if (!reached.reaches(each.edge.effect, each.edge.cause)) {
      reached.add(each.edge, features);
      continue;
    }
    weights(each.edge.cause, each.edge.effect) = 0;
    removed.push_back(each.edge);
  }
  return removed;
}

}  // namespace nsimplex::causal
