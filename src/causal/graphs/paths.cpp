#include "causal/graphs/paths.h"

namespace nsimplex::causal {

Paths::Paths(int64_t features)
    : features_(features),
      words_((features + 63) / 64),
      bits_(static_cast<size_t>(features * words_), 0) {
  for (int64_t column = 0; column < features; ++column) bits_[word(column, column)] |= bit(column);
}

void Paths::add(const CausalEdge& edge) {
  if (leads(edge.cause, edge.effect)) return;
  for (int64_t column = 0; column < features_; ++column) {
    if (!leads(column, edge.cause)) continue;
    for (int64_t k = 0; k < words_; ++k) {
      bits_[static_cast<size_t>(column * words_ + k)] |=
          bits_[static_cast<size_t>(edge.effect * words_ + k)];
    }
  }
}

}  // namespace nsimplex::causal
