#include "causal/structure/sparse_cycles.h"

#include <algorithm>

namespace nsimplex::causal {

// Power iteration hardly ends on a matrix without cycles, so what lies on none is put aside.
bool SpectralAcyclicity::find_cyclic_part(const Vector& weights) {
  const int64_t features = edges_.features();
  cyclic_.assign(static_cast<size_t>(features), 1);
  std::vector<char> causes(cyclic_.size()), effects(cyclic_.size());
  for (bool changed = true; changed;) {
    std::fill(causes.begin(), causes.end(), 0);
    std::fill(effects.begin(), effects.end(), 0);
    for (int64_t effect = 0; effect < features; ++effect) {
      if (cyclic_[static_cast<size_t>(effect)] == 0) continue;
      for (int64_t k = edges_.first(effect); k < edges_.first(effect + 1); ++k) {
        const auto cause = static_cast<size_t>(edges_.cause(k));
        if (weights[k] == 0 || cyclic_[cause] == 0) continue;
        causes[static_cast<size_t>(effect)] = effects[cause] = 1;
      }
    }
    changed = false;
    for (size_t column = 0; column < cyclic_.size(); ++column) {
      if (cyclic_[column] == 0 || (causes[column] != 0 && effects[column] != 0)) continue;
      cyclic_[column] = 0;
      changed = true;
    }
  }
  return std::find(cyclic_.begin(), cyclic_.end(), 1) != cyclic_.end();
}

double SpectralAcyclicity::operator()(const Vector& weights, Vector& gradient) {
  gradient = Vector::Zero(edges_.size());
  if (!find_cyclic_part(weights)) return 0;
  const auto each_edge = [&](auto&& body) {
    for (int64_t effect = 0; effect < edges_.features(); ++effect) {
      if (cyclic_[static_cast<size_t>(effect)] == 0) continue;
      for (int64_t k = edges_.first(effect); k < edges_.first(effect + 1); ++k) {
        const int64_t cause = edges_.cause(k);
        if (cyclic_[static_cast<size_t>(cause)] != 0) body(cause, effect, k);
      }
    }
  };
  const double radius = spectral_radius(
      [&](const Vector& in, Vector& out) {
        out.setZero();
        each_edge([&](int64_t cause, int64_t effect, int64_t k) {
          out[cause] += weights[k] * weights[k] * in[effect];
        });
      },
      [&](const Vector& in, Vector& out) {
        out.setZero();
        each_edge([&](int64_t cause, int64_t effect, int64_t k) {
          out[effect] += weights[k] * weights[k] * in[cause];
        });
      },
      edges_.features(), vectors_);
  const double scale = 2 / vectors_.left.dot(vectors_.right);
  each_edge([&](int64_t cause, int64_t effect, int64_t k) {
    gradient[k] = scale * weights[k] * vectors_.left[cause] * vectors_.right[effect];
  });
  return radius;
}

}  // namespace nsimplex::causal
