// Declares which edges a causal graph may or must have.

#pragma once

#include <nsimplex/causal_options.h>

#include <vector>

namespace nsimplex::causal {

/// EdgeConstraints over `features` columns, as two tables for fast look-ups.
class AllowedEdges {
 public:
  /// Throws InputError that names the constraint and its columns if a column is out of range, an
  /// edge starts and ends at one column, an edge is both required and forbidden (also by a tier),
  /// the number of tiers is not the number of columns, or required edges and paths close a cycle.
  /// Paths allow and require no edges themselves.
  AllowedEdges(const EdgeConstraints& constraints, int64_t features);

  int64_t features() const { return features_; }
  bool allowed(int64_t cause, int64_t effect) const { return allowed_[at(cause, effect)] != 0; }
  bool required(int64_t cause, int64_t effect) const { return required_[at(cause, effect)] != 0; }

  /// True without constraints: every edge between two columns is allowed and none is required.
  bool unconstrained() const { return unconstrained_; }

 private:
  size_t at(int64_t cause, int64_t effect) const {
    return static_cast<size_t>(cause * features_ + effect);
  }
  void require_acyclic(const EdgeConstraints& constraints) const;

  int64_t features_;
  bool unconstrained_;
  std::vector<char> allowed_, required_;
};

}  // namespace nsimplex::causal
