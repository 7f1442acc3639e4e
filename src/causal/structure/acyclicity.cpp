// Computes acyclicity functions with gradients, and lists the candidate edges of an optimiser.

#include "causal/structure/acyclicity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "causal/graph/edge_constraints.h"

namespace nsimplex::causal {

Matrix exponential_of_nonnegative(const Matrix& matrix) {
  // The sum over k <= 12 of B^k / k!. For norms up to 1/4 the remainder is below 1e-16 of it.
  constexpr std::array<double, 13> kInverseFactorials = {
      1,          1,           1. / 2,       1. / 6,        1. / 24,       1. / 120,      1. / 720,
      1. / 5040., 1. / 40320., 1. / 362880., 1. / 3628800., 1. / 39916800, 1. / 479001600};
  constexpr double kNorm = 0.25;
  constexpr size_t kStride = 4;  // Paterson-Stockmeyer: powers up to 4, then Horner in B^4

  const int64_t size = matrix.rows();
  const double norm = size == 0 ? 0 : matrix.rowwise().sum().maxCoeff();
  const int squarings = norm > kNorm ? static_cast<int>(std::ceil(std::log2(norm / kNorm))) : 0;
  std::array<Matrix, kStride + 1> powers;
  powers[0] = Matrix::Identity(size, size);
  powers[1] = std::ldexp(1.0, -squarings) * matrix;
  for (size_t k = 2; k <= kStride; ++k) powers[k].noalias() = powers[k - 1] * powers[1];

  Matrix result = kInverseFactorials[12] * powers[0];
  Matrix product(size, size);
  for (size_t block = 3; block-- > 0;) {
    product.noalias() = result * powers[kStride];
    result.swap(product);
    for (size_t k = 0; k < kStride; ++k) {
      result.noalias() += kInverseFactorials[block * kStride + k] * powers[k];
    }
  }
  for (int k = 0; k < squarings; ++k) {
    product.noalias() = result * result;
    result.swap(product);
  }
  return result;
}

namespace {

// Below this size, elimination is faster than products of halves.
constexpr int64_t kBlock = 32;

// Gauss-Jordan elimination in place.
bool invert_block(Eigen::Ref<Matrix> matrix, double& log_det) {
  const int64_t size = matrix.rows();
  double determinant = 1;
  for (int64_t k = 0; k < size; ++k) {
    const double pivot = matrix(k, k);
    if (!(pivot > 0)) return false;
    determinant *= pivot;
    if (determinant < 1e-200 || determinant > 1e200) {
      log_det += std::log(determinant);
      determinant = 1;
    }
    double* pivot_row = &matrix(k, 0);
    pivot_row[k] = 1;
    for (int64_t j = 0; j < size; ++j) pivot_row[j] /= pivot;
    for (int64_t i = 0; i < size; ++i) {
      double* row = &matrix(i, 0);
      const double factor = row[k];
      if (i == k || factor == 0) continue;
      row[k] = 0;
      for (int64_t j = 0; j < size; ++j) row[j] -= factor * pivot_row[j];
    }
  }
  log_det += std::log(determinant);
  return true;
}

}  // namespace

bool invert_m_matrix(Eigen::Ref<Matrix> matrix, double& log_det) {
  const int64_t size = matrix.rows();
  if (size <= kBlock) return invert_block(matrix, log_det);
  const int64_t head = size / 2;
  const int64_t tail = size - head;
  auto a = matrix.topLeftCorner(head, head);
  auto b = matrix.topRightCorner(head, tail);
  auto c = matrix.bottomLeftCorner(tail, head);
  auto d = matrix.bottomRightCorner(tail, tail);
  if (!invert_m_matrix(a, log_det)) return false;
  const Matrix right = a * b;
  const Matrix below = c * a;
  d.noalias() -= c * right;
  if (!invert_m_matrix(d, log_det)) return false;
  b.noalias() = -right * d;
  c.noalias() = -d * below;
  a.noalias() -= b * below;
  return true;
}

double log_det_acyclicity(const Matrix& weights, double s, Matrix& gradient) {
  gradient = -weights.cwiseAbs2();
  gradient.diagonal().array() += s;
  double log_det = 0;
  if (!invert_m_matrix(gradient, log_det)) return std::numeric_limits<double>::infinity();
  gradient.transposeInPlace();
  gradient.array() *= 2 * weights.array();
  return static_cast<double>(weights.rows()) * std::log(s) - log_det;
}

double trace_exponential_acyclicity(const Matrix& weights, Matrix& gradient) {
  const Matrix exponential = exponential_of_nonnegative(weights.cwiseAbs2());
  gradient = 2 * weights.cwiseProduct(exponential.transpose());
  return exponential.trace() - static_cast<double>(weights.rows());
}

namespace {

// Flags [M, M]: whether required edges lead from a cause to an effect.
std::vector<char> required_paths(const EdgeConstraints& constraints, int64_t features) {
  std::vector<char> reached(static_cast<size_t>(features * features), 0);
  if (constraints.required.empty()) return reached;
  std::vector<std::vector<int64_t>> effects(static_cast<size_t>(features));
  for (const CausalEdge& edge : constraints.required) {
    effects[static_cast<size_t>(edge.cause)].push_back(edge.effect);
  }
  for (int64_t start = 0; start < features; ++start) {
    std::vector<int64_t> open = {start};
    while (!open.empty()) {
      const int64_t column = open.back();
      open.pop_back();
      for (const int64_t effect : effects[static_cast<size_t>(column)]) {
        char& seen = reached[static_cast<size_t>(start * features + effect)];
        if (seen == 0) open.push_back(effect);
        seen = 1;
      }
    }
  }
  return reached;
}

}  // namespace

CandidateEdges::CandidateEdges(const EdgeConstraints& constraints, int64_t features,
                               const Filter& filter)
    : first_({0}) {
  const AllowedEdges allowed(constraints, features);
  const std::vector<char> path = required_paths(constraints, features);
  for (int64_t effect = 0; effect < features; ++effect) {
    for (int64_t cause = 0; cause < features; ++cause) {
      const bool required = allowed.required(cause, effect);
      const bool closes_cycle = path[static_cast<size_t>(effect * features + cause)] != 0;
      if (!allowed.allowed(cause, effect) || closes_cycle) continue;
      if (!required && filter && !filter(cause, effect)) continue;
      causes_.push_back(cause);
      required_.push_back(required ? 1 : 0);
    }
    first_.push_back(static_cast<int64_t>(causes_.size()));
  }
}

Vector CandidateEdges::penalties(double sparsity) const {
  Vector penalties = Vector::Constant(size(), sparsity);
  for (int64_t edge = 0; edge < size(); ++edge) {
    if (required_[static_cast<size_t>(edge)] != 0) penalties[edge] = 0;
  }
  return penalties;
}

Matrix CandidateEdges::matrix(const Vector& weights) const {
  Matrix matrix = Matrix::Zero(features(), features());
  for (int64_t effect = 0; effect < features(); ++effect) {
    for (int64_t k = first(effect); k < first(effect + 1); ++k) {
      matrix(cause(k), effect) = weights[k];
    }
  }
  return matrix;
}

Vector CandidateEdges::weights(const Matrix& matrix) const {
  Vector weights(size());
  for (int64_t effect = 0; effect < features(); ++effect) {
    for (int64_t k = first(effect); k < first(effect + 1); ++k) {
      weights[k] = matrix(cause(k), effect);
    }
  }
  return weights;
}

// Power iteration converges slowly on a matrix without cycles. So columns on no cycle are left out.
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
  weighted_.clear();
  for (int64_t effect = 0; effect < edges_.features(); ++effect) {
    if (cyclic_[static_cast<size_t>(effect)] == 0) continue;
    for (int64_t k = edges_.first(effect); k < edges_.first(effect + 1); ++k) {
      const int64_t cause = edges_.cause(k);
      if (weights[k] == 0 || cyclic_[static_cast<size_t>(cause)] == 0) continue;
      weighted_.push_back({cause, effect, k, weights[k] * weights[k]});
    }
  }
  const double radius = spectral_radius(
      [&](const Vector& in, Vector& out) {
        out.setZero();
        for (const Edge& edge : weighted_) out[edge.cause] += edge.square * in[edge.effect];
      },
      [&](const Vector& in, Vector& out) {
        out.setZero();
        for (const Edge& edge : weighted_) out[edge.effect] += edge.square * in[edge.cause];
      },
      edges_.features(), vectors_);
  const double scale = 2 / vectors_.left.dot(vectors_.right);
  for (const auto& [cause, effect, number, square] : weighted_) {
    gradient[number] = scale * weights[number] * vectors_.left[cause] * vectors_.right[effect];
  }
  return radius;
}

}  // namespace nsimplex::causal
