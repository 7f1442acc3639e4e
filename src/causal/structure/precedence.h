#pragma once

#include <nsimplex/causal_options.h>

#include <vector>

namespace nsimplex::causal {

/// Columns in causal order: nothing causes what stands before it.
using Order = std::vector<int64_t>;

/// Which columns must stand before which in a causal order: required causes before their effects,
/// earlier tiers before later ones.
class Precedence {
 public:
  Precedence(const EdgeConstraints& constraints, int64_t features);

  int64_t features() const { return features_; }
  bool before(int64_t first, int64_t second) const {
    return before_[static_cast<size_t>(first * features_ + second)] != 0;
  }

 private:
  int64_t features_;
  std::vector<char> before_;
};

/// The columns that may come next while an order is built from its front.
class OpenColumns {
 public:
  explicit OpenColumns(const Precedence& precedence);

  /// Neither placed nor behind one that is not placed.
  bool open(int64_t column) const { return waits_for_[static_cast<size_t>(column)] == 0; }
  void place(int64_t column);

 private:
  const Precedence& precedence_;
  std::vector<int64_t> waits_for_;
};

}  // namespace nsimplex::causal
