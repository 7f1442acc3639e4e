#include "causal/structure/precedence.h"

namespace nsimplex::causal {

Precedence::Precedence(const EdgeConstraints& constraints, int64_t features)
    : features_(features), before_(static_cast<size_t>(features * features), 0) {
  for (const CausalEdge& edge : constraints.required) {
    before_[static_cast<size_t>(edge.cause * features + edge.effect)] = 1;
  }
  const std::vector<int64_t>& tiers = constraints.tiers;
  for (size_t first = 0; first < tiers.size(); ++first) {
    for (size_t second = 0; second < tiers.size(); ++second) {
      if (tiers[first] < tiers[second]) before_[first * tiers.size() + second] = 1;
    }
  }
}

OpenColumns::OpenColumns(const Precedence& precedence)
    : precedence_(precedence), waits_for_(static_cast<size_t>(precedence.features()), 0) {
  for (int64_t column = 0; column < precedence.features(); ++column) {
    for (int64_t first = 0; first < precedence.features(); ++first) {
      if (precedence.before(first, column)) ++waits_for_[static_cast<size_t>(column)];
    }
  }
}

void OpenColumns::place(int64_t column) {
  waits_for_[static_cast<size_t>(column)] = -1;  // never open again
  for (int64_t second = 0; second < precedence_.features(); ++second) {
    if (precedence_.before(column, second)) --waits_for_[static_cast<size_t>(second)];
  }
}

}  // namespace nsimplex::causal
