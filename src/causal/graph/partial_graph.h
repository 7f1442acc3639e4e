// Declares graphs whose edges have open directions, and the acyclic graphs that they stand for.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// A graph of M columns, some of whose edges have no direction. Entries of a matrix other than 0
/// are edges i -> j, and a pair with both entries is an edge of open direction.
class PartialGraph {
 public:
  explicit PartialGraph(const Matrix& graph);

  int64_t features() const { return features_; }
  bool arrow(int64_t cause, int64_t effect) const {
    return entry(cause, effect) && !entry(effect, cause);
  }
  bool line(int64_t one, int64_t other) const { return entry(one, other) && entry(other, one); }
  bool joined(int64_t one, int64_t other) const { return entry(one, other) || entry(other, one); }

  /// Whether some edge is open.
  bool is_open() const;
  /// Gives an edge this direction.
  void direct(int64_t cause, int64_t effect) { entries_[at(effect, cause)] = 0; }

  /// An acyclic graph with these edges, these arrows and no collider of columns without an edge
  /// between them that the arrows do not have. Nothing if there is none. Complexity: O(M^2) per
  /// column that is taken off, and O(d^2) per column of d neighbours.
  ///
  /// Source: Dor, Tarsi, "A simple algorithm to construct a consistent extension of a partially
  /// oriented graph", 1992.
  std::optional<Matrix> member() const;

  /// One member for each set of causes that a column may have, the first with the fewest open edges
  /// into it. Throws InputError "graph: .." if no member exists, or if there are more than `most`
  /// sets.
  ///
  /// Source: Maathuis, Kalisch, Buehlmann, "Estimating high-dimensional intervention effects from
  /// observational data", Annals of Statistics 2009, lemma 3.1.
  std::vector<Matrix> members_by_causes(int64_t column, int64_t most) const;

 private:
  size_t at(int64_t cause, int64_t effect) const {
    return static_cast<size_t>(cause * features_ + effect);
  }
  bool entry(int64_t cause, int64_t effect) const { return entries_[at(cause, effect)] != 0; }
  bool may_be_taken_off(int64_t column, std::span<const char> left) const;
  bool may_be_causes(int64_t column, std::span<const int64_t> causes) const;

  int64_t features_;
  std::vector<char> entries_;
};

}  // namespace nsimplex::causal
