// Computes the loss and acyclicity of graphs of low rank.

#include "causal/structure/low_rank.h"

#include <Eigen/LU>

#include <cmath>

namespace nsimplex::causal {
namespace {

constexpr double kSettled = 1e-8;  // relative change of the radius that ends the iteration

}  // namespace

double spectral_radius(const Product& times, const Product& times_transposed, int64_t features,
                       PerronVectors& vectors, int products) {
  auto& [left, right] = vectors;
  if (left.size() != features) {
    left = Vector::Ones(features).normalized();
    right = left;
  }
  // Keeps every entry positive, because the next matrix may need a direction that the last one did
  // not.
  const double floor = 1e-3 / std::sqrt(static_cast<double>(features));
  left = left.cwiseMax(floor);
  right = right.cwiseMax(floor);
  Vector left_product(features), right_product(features);
  double radius = 0;
  for (int product = 0; product < products; ++product) {
    times(right, right_product);
    times_transposed(left, left_product);
    const double last = radius;
    radius = left.dot(right_product) / left.dot(right);
    if (right_product.squaredNorm() == 0 || left_product.squaredNorm() == 0) return 0;
    if (product > 0 && std::abs(radius - last) <= kSettled * radius) break;
    const double shift = radius / 2;
    right = (right_product + shift * right).normalized();
    left = (left_product + shift * left).normalized();
  }
  return radius;
}

namespace {

// The derivatives (G - diag G) V and (G - diag G)^T U of F(A(U, V)) with G = dF/dA, from G V, G^T U
// and diag G.
void add_slopes(const LowRankGraph& graph, const Matrix& times_effect,
                const Matrix& transposed_times_cause, const Vector& diagonal, double scale,
                LowRankGraph& slopes) {
  slopes.cause += scale * (times_effect - diagonal.asDiagonal() * graph.effect);
  slopes.effect += scale * (transposed_times_cause - diagonal.asDiagonal() * graph.cause);
}

// out = (A o A) in for A = rows columns^T without its diagonal.
void square_times(const Matrix& rows, const Matrix& columns, const Vector& diagonal,
                  const Vector& in, Vector& out) {
  const Matrix middle = columns.transpose() * in.asDiagonal() * columns;
  out = (rows * middle).cwiseProduct(rows).rowwise().sum() - diagonal.cwiseAbs2().cwiseProduct(in);
}

}  // namespace

Matrix LowRankGraph::dense() const {
  Matrix graph = cause * effect.transpose();
  graph.diagonal().setZero();
  return graph;
}

double low_rank_loss(const LowRankGraph& graph, const Matrix& covariance, LowRankGraph& slopes) {
  // I - A = E - U V^T, E = I + diag(u_i . v_i)
  const Vector diagonal = Vector::Ones(covariance.rows()) + graph.diagonal();
  const Matrix with_cause = covariance * graph.cause;
  const Matrix with_effect = covariance * (diagonal.asDiagonal() * graph.effect);
  const Matrix inner = graph.cause.transpose() * with_cause;
  const Matrix effects = graph.effect.transpose() * graph.effect;
  const Vector crossed = with_cause.cwiseProduct(graph.effect).rowwise().sum();
  const double loss = inner.cwiseProduct(effects).sum() / 2 - diagonal.dot(crossed) +
                      diagonal.cwiseAbs2().dot(covariance.diagonal()) / 2;
  add_slopes(graph, with_cause * effects - with_effect,
             graph.effect * inner - diagonal.asDiagonal() * with_cause,
             crossed - covariance.diagonal().cwiseProduct(diagonal), 1, slopes);
  return loss;
}

LowRankInverse::LowRankInverse(const LowRankGraph& graph) : graph_(graph) {
  const Vector diagonal = Vector::Ones(graph.cause.rows()) + graph.diagonal();
  if (!(diagonal.minCoeff() >= kLeastDiagonal)) return;
  inverse_diagonal_ = diagonal.cwiseInverse();
  const int64_t rank = graph.cause.cols();
  const Matrix middle = Matrix::Identity(rank, rank) -
                        graph.effect.transpose() * inverse_diagonal_.asDiagonal() * graph.cause;
  const Eigen::PartialPivLU<Matrix> lu(middle);
  const double determinant_sign = lu.determinant();
  if (!(determinant_sign > 0)) return;
  core_ = lu.inverse();
  log_det_ = diagonal.array().log().sum() + lu.matrixLU().diagonal().array().abs().log().sum();
  exists_ = true;
}

Matrix LowRankInverse::times(const Matrix& thin) const {
  const Matrix scaled = inverse_diagonal_.asDiagonal() * thin;
  return scaled + inverse_diagonal_.asDiagonal() *
                      (graph_.cause * (core_ * (graph_.effect.transpose() * scaled)));
}

Matrix LowRankInverse::transposed_times(const Matrix& thin) const {
  const Matrix scaled = inverse_diagonal_.asDiagonal() * thin;
  return scaled + inverse_diagonal_.asDiagonal() *
                      (graph_.effect * (core_.transpose() * (graph_.cause.transpose() * scaled)));
}

Vector LowRankInverse::diagonal() const {
  return inverse_diagonal_.array() *
         (1 + (graph_.cause * core_).cwiseProduct(graph_.effect).rowwise().sum().array() *
                  inverse_diagonal_.array());
}

void add_log_det_slopes(const LowRankGraph& graph, const LowRankInverse& inverse, double scale,
                        LowRankGraph& slopes) {
  add_slopes(graph, inverse.transposed_times(graph.effect), inverse.times(graph.cause),
             inverse.diagonal(), scale, slopes);
}

double low_rank_radius(const LowRankGraph& graph, PerronVectors& vectors, double scale,
                       LowRankGraph& slopes) {
  const auto& [cause, effect] = graph;
  const Vector diagonal = graph.diagonal();
  const double radius = spectral_radius(
      [&](const Vector& in, Vector& out) { square_times(cause, effect, diagonal, in, out); },
      [&](const Vector& in, Vector& out) { square_times(effect, cause, diagonal, in, out); },
      cause.rows(), vectors);
  const auto& [left, right] = vectors;
  const double slope = 2 * scale / left.dot(right);
  const Matrix effects = effect.transpose() * right.asDiagonal() * effect;
  const Matrix causes = cause.transpose() * left.asDiagonal() * cause;
  add_slopes(graph, left.asDiagonal() * (cause * effects), right.asDiagonal() * (effect * causes),
             left.cwiseProduct(diagonal).cwiseProduct(right), slope, slopes);
  return radius;
}

}  // namespace nsimplex::causal
