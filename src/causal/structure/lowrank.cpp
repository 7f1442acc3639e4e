#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "causal/structure/candidate_edges.h"
#include "causal/structure/covariance.h"
#include "causal/structure/estimators.h"
#include "causal/structure/low_rank.h"
#include "causal/structure/quasi_newton.h"
#include "support/error.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

constexpr double kLowRankSparsity = 0.02;  // that of GOLEM, whose likelihood this is
constexpr std::array<double, 4> kPenalties = {1, 10, 100, 1000};
constexpr int64_t kLowRankIterations = 200;  // with each penalty
constexpr double kForbidden = 100;           // half of it times A_ij^2 for an edge that cannot be
constexpr double kCorner = 1e-3;  // |a| is sqrt(a^2 + kCorner^2): what is below counts as nothing
constexpr double kStart = 0.1;    // entries of the first U and V, which cannot be zero

// Points of the minimiser are U and V one after the other.
LowRankGraph unpack(const Vector& point, int64_t features, int64_t rank) {
  const int64_t half = features * rank;
  return {Eigen::Map<const Matrix>(point.data(), features, rank),
          Eigen::Map<const Matrix>(point.data() + half, features, rank)};
}

void pack(const LowRankGraph& graph, Vector& point) {
  point.resize(graph.cause.size() + graph.effect.size());
  std::copy_n(graph.cause.data(), graph.cause.size(), point.data());
  std::copy_n(graph.effect.data(), graph.effect.size(), point.data() + graph.cause.size());
}

// sum_ij l1_ij |A_ij|, rounded off at zero, and what keeps edges away that cannot be.
double dense_terms(const LowRankGraph& graph, const Matrix& l1, const Matrix& possible,
                   LowRankGraph& slopes) {
  const Matrix dense = graph.dense();
  const Matrix size = (dense.array().square() + kCorner * kCorner).sqrt();
  const Matrix impossible = dense.cwiseProduct((1 - possible.array()).matrix());
  const Matrix slope = l1.cwiseProduct(dense).cwiseQuotient(size) + kForbidden * impossible;
  slopes.cause.noalias() += slope * graph.effect;
  slopes.effect.noalias() += slope.transpose() * graph.cause;
  return l1.cwiseProduct(size).sum() + kForbidden / 2 * impossible.squaredNorm();
}

}  // namespace

Structure fit_lowrank(TableView table, const CausalFitOptions& options) {
  const int64_t features = table.cols(), rank = std::min(options.rank, features);
  const Matrix covariance = covariance_of(table).matrix;
  const CandidateEdges edges(options.constraints, features);
  Matrix possible = edges.matrix(Vector::Ones(edges.size()));
  possible.diagonal().setOnes();  // A has none
  const Matrix l1 = edges.matrix(edges.penalties(options.sparsity.value_or(kLowRankSparsity)));
  const bool thin = l1.maxCoeff() == 0 && possible.minCoeff() == 1;

  PerronVectors vectors;
  double penalty = 0;
  const auto objective = [&](const Vector& point, Vector& gradient) {
    const LowRankGraph graph = unpack(point, features, rank);
    const LowRankInverse inverse(graph);
    if (!inverse.exists()) return std::numeric_limits<double>::infinity();
    LowRankGraph slopes{Matrix::Zero(features, rank), Matrix::Zero(features, rank)};
    const double loss = low_rank_loss(graph, covariance, slopes);
    const double factor = static_cast<double>(features) / (2 * loss);
    slopes.cause *= factor;
    slopes.effect *= factor;
    add_log_det_slopes(graph, inverse, 1, slopes);
    double value = static_cast<double>(features) / 2 * std::log(loss) - inverse.log_det();
    value += penalty * low_rank_radius(graph, vectors, penalty, slopes);
    if (!thin) value += dense_terms(graph, l1, possible, slopes);
    pack(slopes, gradient);
    return value;
  };
  RandomStream random(static_cast<uint64_t>(options.seed));
  Vector point(2 * features * rank);
  for (double& entry : point)
    entry = kStart / std::sqrt(static_cast<double>(rank)) * (2 * random.unit() - 1);
  const Vector none = Vector::Zero(point.size());
  for (const double each : kPenalties) {
    penalty = each;
    minimise(
        objective, none, point,
        {.iterations = kLowRankIterations, .tolerance = 1e-6, .checkpoint = options.checkpoint});
  }
  const Matrix found = unpack(point, features, rank).dense().cwiseProduct(possible);
  return {found, found.cwiseAbs(), "lowrank"};
}

}  // namespace nsimplex::causal
