#pragma once

#include <nsimplex/causal_options.h>

namespace nsimplex::causal {

/// Which columns paths lead to from each column, itself included, while edges are added: rows of
/// bits. Complexity: O(M^2 / 64) for an edge that makes a column reachable, else O(1).
class Paths {
 public:
  explicit Paths(int64_t features);

  void add(const CausalEdge& edge);
  bool leads(int64_t from, int64_t to) const { return (bits_[word(from, to)] & bit(to)) != 0; }

 private:
  size_t word(int64_t from, int64_t to) const {
    return static_cast<size_t>(from * words_ + to / 64);
  }
  static uint64_t bit(int64_t to) { return uint64_t{1} << (to % 64); }

  int64_t features_, words_;
  std::vector<uint64_t> bits_;
};

}  // namespace nsimplex::causal
