// Learns causal graphs by continuous optimisation: notears, logdet, lowrank and spectral.

#include "causal/structure/estimators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "causal/structure/acyclicity.h"
#include "causal/structure/lasso.h"
#include "causal/structure/low_rank.h"
#include "causal/structure/order_search.h"
#include "causal/structure/quasi_newton.h"
#include "support/error.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

// As in the authors' code.
constexpr double kNotearsSparsity = 0.1;
constexpr double kAcyclic = 1e-8;     // a graph counts as acyclic below this h
constexpr double kLargestRho = 1e16;  // the method stops above this penalty
constexpr double kProgress = 0.25;    // rho grows if a round leaves more than this part of h
constexpr int kNotearsRounds = 100;

}  // namespace

Structure fit_notears(TableView table, const CausalFitOptions& options) {
  const Matrix covariance = covariance_of(table).matrix;
  const CandidateEdges edges(options.constraints, table.cols());
  const Vector l1 = edges.penalties(options.sparsity.value_or(kNotearsSparsity));
  LeastSquares loss(covariance, edges);

  Vector weights = Vector::Zero(edges.size());
  double rho = 1, alpha = 0, h = std::numeric_limits<double>::infinity();
  Matrix slope;
  const auto objective = [&](const Vector& point, Vector& gradient) {
    const double acyclicity = trace_exponential_acyclicity(edges.matrix(point), slope);
    if (!std::isfinite(acyclicity)) return std::numeric_limits<double>::infinity();
    const double value = loss(point, gradient);
    gradient += (rho * acyclicity + alpha) * edges.weights(slope);
    return value + rho / 2 * acyclicity * acyclicity + alpha * acyclicity;
  };
  for (int round = 0; round < kNotearsRounds && h > kAcyclic && rho < kLargestRho; ++round) {
    Vector next;
    double next_h = 0;
    for (;;) {
      next = weights;
      minimise(objective, l1, next, {.checkpoint = options.checkpoint});
      next_h = trace_exponential_acyclicity(edges.matrix(next), slope);
      if (next_h <= kProgress * h || rho >= kLargestRho) break;
      rho *= 10;
    }
    weights = next;
    h = next_h;
    alpha += rho * h;
  }
  const Matrix found = edges.matrix(weights);
  return {found, found.cwiseAbs(), "notears"};
}

namespace {

constexpr double kLogdetSparsity = 0.03;

struct Stage {
  double mu, s;
  int64_t iterations;
  double tolerance;
};

// mu and s as in the source, with one stage less; the first stages only provide a starting point.
constexpr std::array<Stage, 4> kStages = {
    {{1, 1, 60, 1e-4}, {0.1, 0.9, 60, 1e-4}, {0.01, 0.8, 60, 1e-4}, {0.001, 0.7, 100, 1e-5}}};

class CentralPath {
 public:
  CentralPath(const Matrix& covariance, const CandidateEdges& edges, double sparsity,
              const CausalFitOptions& options)
      : edges_(edges),
        loss_(covariance, edges),
        l1_(edges.penalties(sparsity)),
        checkpoint_(options.checkpoint) {}

  // Moves the weights to a minimum of a stage's objective and returns the minimum.
  double descend(const Stage& stage, Vector& weights) {
    Matrix slope;
    const auto objective = [&](const Vector& point, Vector& gradient) {
      const double acyclicity = log_det_acyclicity(edges_.matrix(point), stage.s, slope);
      if (std::isinf(acyclicity)) return acyclicity;
      const double loss = loss_(point, gradient);
      gradient = stage.mu * gradient + edges_.weights(slope);
      return stage.mu * loss + acyclicity;
    };
    return minimise(
        objective, stage.mu * l1_, weights,
        {.iterations = stage.iterations, .tolerance = stage.tolerance, .checkpoint = checkpoint_});
  }

 private:
  const CandidateEdges& edges_;
  LeastSquares loss_;
  Vector l1_;
  std::function<void()> checkpoint_;
};

}  // namespace

Structure fit_logdet(TableView table, const CausalFitOptions& options) {
  const Covariance covariance = covariance_of(table);
  const CandidateEdges edges(options.constraints, table.cols());
  const double sparsity = options.sparsity.value_or(kLogdetSparsity);
  CentralPath path(covariance.matrix, edges, sparsity, options);

  Vector weights = Vector::Zero(edges.size());
  double value = 0;
  for (const Stage& stage : kStages) value = path.descend(stage, weights);

  Vector ordered =
      edges.weights(shared_variance_graph(covariance, options.constraints, going(options)));
  const double ordered_value = path.descend(kStages.back(), ordered);
  const bool from_order = ordered_value < value;
  const Matrix found = edges.matrix(from_order ? ordered : weights);
  return {found, found.cwiseAbs(), from_order ? "logdet from order" : "logdet"};
}

namespace {

constexpr double kLowRankSparsity = 0.02;  // that of GOLEM, which has the same likelihood
constexpr std::array<double, 4> kLowRankPenalties = {1, 10, 100, 1000};
constexpr int64_t kLowRankIterations = 200;  // per penalty
// penalty kForbidden / 2 A_ij^2 of an edge that is not allowed
constexpr double kForbidden = 100;
constexpr double kCorner = 1e-3;  // |a| is replaced by sqrt(a^2 + kCorner^2)
// size of the entries of the first U and V, which must not be zero
constexpr double kFirstEntry = 0.1;

// The minimiser's vector contains U and then V.
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

// The sum of l1_ij |A_ij|, smoothed at zero, and the penalty of edges that are not allowed.
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
  possible.diagonal().setOnes();  // the diagonal of A is 0
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
    entry = kFirstEntry / std::sqrt(static_cast<double>(rank)) * (2 * random.unit() - 1);
  const Vector none = Vector::Zero(point.size());
  for (const double each : kLowRankPenalties) {
    penalty = each;
    minimise(
        objective, none, point,
        {.iterations = kLowRankIterations, .tolerance = 1e-6, .checkpoint = options.checkpoint});
  }
  const Matrix found = unpack(point, features, rank).dense().cwiseProduct(possible);
  return {found, found.cwiseAbs(), "lowrank"};
}

namespace {

constexpr double kSpectralSparsity = 0.03;
constexpr std::array<double, 6> kSpectralPenalties = {0.01, 0.1, 1, 10, 100, 1000};
constexpr int64_t kIterations = 60;  // per penalty

}  // namespace

Structure fit_spectral(TableView table, const CausalFitOptions& options) {
  const int64_t features = table.cols();
  const Covariance covariance = covariance_of(table);
  const Matrix graph = shared_variance_graph(covariance, options.constraints, going(options));
  const std::vector<char> near = neighbourhoods(covariance, options.checkpoint, options.stop);
  const CandidateEdges edges(options.constraints, features, [&](int64_t cause, int64_t effect) {
    return near[static_cast<size_t>(cause * features + effect)] != 0 || graph(cause, effect) != 0;
  });
  const Vector l1 = edges.penalties(options.sparsity.value_or(kSpectralSparsity));
  LeastSquares loss(covariance.matrix, edges);
  SpectralAcyclicity acyclicity(edges);

  Vector slope;
  const auto objective_at = [&](double penalty) {
    return [&, penalty](const Vector& point, Vector& gradient) {
      const double value = loss(point, gradient);
      const double radius = acyclicity(point, slope);
      gradient += penalty * slope;
      return value + penalty * radius;
    };
  };
  const auto descend = [&](double penalty, Vector& weights) {
    return minimise(objective_at(penalty), l1, weights,
                    {.iterations = kIterations,
                     .tolerance = 1e-6,
                     .checkpoint = options.checkpoint,
                     .stop = options.stop});
  };
  Vector weights = Vector::Zero(edges.size());
  for (const double penalty : kSpectralPenalties) descend(penalty, weights);

  Vector ordered = edges.weights(graph), gradient;
  const double value =
      objective_at(kSpectralPenalties.back())(weights, gradient) + l1.dot(weights.cwiseAbs());
  const bool from_order = descend(kSpectralPenalties.back(), ordered) < value;
  const Matrix found = edges.matrix(from_order ? ordered : weights);
  return {found, found.cwiseAbs(), from_order ? "spectral from order" : "spectral"};
}

}  // namespace nsimplex::causal
