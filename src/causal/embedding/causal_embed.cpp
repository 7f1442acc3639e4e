// Conversions between the models of hyperbolic space, composed of ATen's operators. They are
// differentiable wherever the formulas have a derivative.
//
// The file also has the public functions of nsimplex/causal_embedding.h, which turn tensors into
// graphs and points and run the loops on torch's threads, and their operators for Python, with
// options by name.

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <nsimplex/causal_embedding.h>
#include <torch/library.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "causal/embedding/embed.h"
#include "causal/embedding/neighbours.h"
#include "causal/embedding/points.h"
#include "causal/embedding/recorded_distances.h"
#include "causal/option_names.h"
#include "causal/tensors.h"
#include "support/error.h"
#include "support/interruptible.h"
#include "support/operator.h"
#include "support/parallel.h"
#include "support/stopwatch.h"
#include "support/transforms.h"

namespace nsimplex {
namespace {

using at::Tensor;

// The divisor of vectors of the last dimension before they are squared.
Tensor size_of(const Tensor& vectors) { return vectors.detach().abs().amax(-1, true).clamp_min(1); }

// Vectors x of the last dimension as |x| and x / |x|, in double: near the rim of the ball a
// narrower type loses its digits.
class Polar {
 public:
  explicit Polar(const Tensor& vectors) : wide_(vectors.to(at::kDouble)) {
    const Tensor size = size_of(wide_), scaled = wide_ / size;
    const Tensor squares = scaled.square().sum(-1, true);
    // The norm has no derivative at 0, so 1 takes its place there.
    zero_ = squares == 0;
    const Tensor norm = squares.masked_fill(zero_, 1).sqrt();
    radius_ = norm * size;
    direction_ = scaled / norm;
  }

  /// length(|x|) x / |x|, and `slope` x at the origin.
  template <class Function>
  Tensor along(double slope, const Function& length) const {
    return at::where(zero_, slope * wide_, direction_ * length(radius_));
  }

 private:
  Tensor wide_, radius_, direction_, zero_;
};

struct TypeLimits {
  double epsilon, largest;
};

TypeLimits limits_of(at::ScalarType type) {
  return AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, "limits_of", [] {
    using Limits = std::numeric_limits<scalar_t>;
    return TypeLimits{static_cast<double>(Limits::epsilon()), static_cast<double>(Limits::max())};
  });
}

void check_vectors(const char* function, const char* argument, const Tensor& vectors) {
  TORCH_CHECK_TYPE(at::isFloatingType(vectors.scalar_type()), "[", function, "] ", argument,
                   ": expected floating point numbers, got ", vectors.scalar_type());
  TORCH_CHECK_VALUE(vectors.dim() >= 1 && vectors.size(-1) >= 1, "[", function, "] ", argument,
                    ": expected shape [.., d], got ", vectors.sizes());
}

}  // namespace

Tensor hyperboloid_points(const Tensor& tangents) {
  check_vectors("hyperboloid_points", "tangents", tangents);
  // Below the largest radius, so that sums of a few thousand derivatives are finite too: for double
  // there is no wider type.
  const double most = std::min(std::asinh(0.5 * limits_of(tangents.scalar_type()).largest), 700.0);
  const Tensor space = Polar(tangents).along(
      1, [most](const Tensor& radius) { return radius.clamp_max(most).sinh(); });
  // sqrt(1 + |space|^2), so that <p, p> = -1 holds to rounding.
  const Tensor size = size_of(space);
  const Tensor squares = (space / size).square().sum(-1, true) + size.reciprocal().square();
  return at::cat({size * squares.sqrt(), space}, -1).to(tangents.scalar_type());
}

Tensor ball_points(const Tensor& tangents) {
  check_vectors("ball_points", "tangents", tangents);
  const double most = causal::largest_ball_norm(limits_of(tangents.scalar_type()).epsilon);
  return Polar(tangents)
      .along(0.5, [most](const Tensor& radius) { return (0.5 * radius).tanh().clamp_max(most); })
      .to(tangents.scalar_type());
}

Tensor ball_tangents(const Tensor& ball) {
  check_vectors("ball_tangents", "ball", ball);
  // The last number before 1.
  const double most = 1 - 0.5 * limits_of(ball.scalar_type()).epsilon;
  return Polar(ball)
      .along(2, [most](const Tensor& norm) { return 2 * norm.clamp_max(most).atanh(); })
      .to(ball.scalar_type());
}

namespace {

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("hyperboloid_points(Tensor tangents) -> Tensor", TORCH_FN(hyperboloid_points));
  m.def("ball_points(Tensor tangents) -> Tensor", TORCH_FN(ball_points));
  m.def("ball_tangents(Tensor ball) -> Tensor", TORCH_FN(ball_tangents));
}

}  // namespace

using at::Tensor;

namespace causal {
namespace {

void on_threads(int64_t tasks, const std::function<void(int64_t)>& body) {
  parallel_tasks(tasks, [&](int64_t task, int) { body(task); });
}

// Floating point numbers on the CPU. `place`: "[function] argument".
void check_numbers(const std::string& place, const Tensor& numbers) {
  TORCH_CHECK_VALUE(numbers.defined(), place, ": expected a tensor, got none");
  TORCH_CHECK_TYPE(at::isFloatingType(numbers.scalar_type()), place,
                   ": expected floating point numbers, got ", numbers.scalar_type());
  TORCH_CHECK_VALUE(!numbers.is_nested() && !numbers.is_mkldnn(), place,
                    ": expected a dense or sparse tensor, got one of another layout");
  TORCH_CHECK_VALUE(numbers.is_cpu(), place, ": expected a tensor on the CPU, got one on ",
                    numbers.device());
}

SparseGraph to_graph(const char* function, const Tensor& adjacency) {
  const std::string place = c10::str("[", function, "] adjacency");
  check_numbers(place, adjacency);
  TORCH_CHECK_VALUE(
      adjacency.dim() == 2 && adjacency.size(0) == adjacency.size(1) && adjacency.size(0) > 0,
      place, ": expected shape [M, M], got ", adjacency.sizes());
  const int64_t nodes = adjacency.size(0);
  as_function(function, [&] {
    require_room("adjacency", {nodes});
    if (adjacency.layout() == at::kStrided) require_room("adjacency", {nodes, nodes});
  });
  const Tensor entries =
      (adjacency.is_sparse() ? adjacency : adjacency.to_sparse()).detach().coalesce();
  const Tensor places = entries.indices().t().contiguous();
  const Tensor values = entries.values().to(at::kDouble).resolve_neg().contiguous();
  TORCH_CHECK_VALUE(values.dim() == 1, place, ": expected numbers as entries, got shape ",
                    values.sizes().slice(1));
  const int64_t* at = places.const_data_ptr<int64_t>();
  const double* value = values.const_data_ptr<double>();
  std::vector<Eigen::Triplet<double, int64_t>> edges;
  for (int64_t k = 0; k < values.size(0); ++k) {
    const int64_t cause = at[2 * k], effect = at[2 * k + 1];
    TORCH_CHECK_VALUE(std::isfinite(value[k]), place, ": expected finite numbers, got ",
                      std::isnan(value[k]) ? NAN : value[k], " in row ", cause, ", column ",
                      effect);
    TORCH_CHECK_VALUE(cause >= 0 && cause < nodes && effect >= 0 && effect < nodes, place,
                      ": expected entries of rows and columns 0 to ", nodes - 1, ", got (", cause,
                      ", ", effect, ")");
    if (cause != effect && value[k] != 0) edges.emplace_back(cause, effect, value[k]);
  }
  SparseGraph graph(nodes, nodes);
  graph.setFromTriplets(edges.begin(), edges.end());
  return graph;
}

// Tangents of points as float64 [M, d].
Tensor checked_tangents(const char* function, const Tensor& tangents) {
  const std::string place = c10::str("[", function, "] tangents");
  check_numbers(place, tangents);
  TORCH_CHECK_VALUE(tangents.layout() == at::kStrided, place,
                    ": expected a dense tensor, got layout ", tangents.layout());
  TORCH_CHECK_VALUE(tangents.dim() == 2 && tangents.size(1) > 0, place,
                    ": expected shape [M, d], got ", tangents.sizes());
  as_function(function, [&] { require_room("tangents", {tangents.size(0), tangents.size(1)}); });
  const Tensor wide = tangents.detach().to(at::kDouble);
  const Tensor rows = (wide.is_neg() ? wide.resolve_neg() : wide).contiguous();
  const Tensor radii = rows.norm(2, 1);
  const Tensor far = radii.le(kLargestRadius).logical_not().nonzero();  // NaN too
  TORCH_CHECK_VALUE(far.numel() == 0, place, ": expected rows of norm ", kLargestRadius,
                    " or less, got ", radii[far[0][0]].item<double>(), " in row ",
                    far[0][0].item<int64_t>());
  return rows;
}

Points to_points(const char* function, const Tensor& tangents) {
  return Points(view_matrix(checked_tangents(function, tangents)));
}

}  // namespace
}  // namespace causal

CausalEmbedding causal_embed(const Tensor& adjacency, const CausalEmbeddingOptions& options) {
  const causal::SparseGraph graph = causal::to_graph("causal_embed", adjacency);
  const Stopwatch watch;
  causal::Embedding made;
  as_function("causal_embed", [&] {
    require_room("dimension", {graph.rows(), options.dimension});
    made = causal::embed(graph, options, causal::on_threads);
  });
  const double seconds = watch.seconds();
  const auto tensor = [](const double* data, at::IntArrayRef shape) {
    return at::from_blob(const_cast<double*>(data), shape, at::kDouble).clone();
  };
  const int64_t nodes = graph.rows();
  return {tensor(made.tangents.data(), {nodes, options.dimension}),
          tensor(made.generality.data(), {nodes}),
          made.loss,
          made.attraction.hops,
          made.attraction.side,
          made.without_negatives,
          seconds};
}

CausalRanking causal_ranking(const Tensor& tangents, const Tensor& adjacency) {
  const causal::SparseGraph graph = causal::to_graph("causal_ranking", adjacency);
  const causal::Points points = causal::to_points("causal_ranking", tangents);
  TORCH_CHECK_VALUE(points.count() == graph.rows(), "[causal_ranking] tangents: expected ",
                    graph.rows(), " rows, one per node, got ", points.count());
  const auto ranking =
      causal::rank_ancestors(points, causal::transitive_closure(graph), causal::on_threads);
  return {ranking.mean_rank, ranking.mean_precision, ranking.pairs};
}

std::string causal_embedding_warning(const Tensor& tangents,
                                     const std::optional<Tensor>& adjacency) {
  constexpr const char* kName = "causal_embedding_warning";
  const causal::Matrix points = causal::view_matrix(causal::checked_tangents(kName, tangents));
  if (!adjacency) return causal::why_blank(points);
  const causal::SparseGraph graph = causal::to_graph(kName, *adjacency);
  TORCH_CHECK_VALUE(points.rows() == graph.rows(), "[", kName, "] tangents: expected ",
                    graph.rows(), " rows, one per node, got ", points.rows());
  return causal::why_blank(points, graph);
}

namespace {

// Whether distances must consist of ATen calls: a derivative is asked for, or a transform or a
// traced graph stands between the call and the numbers.
bool needs_recording(const Tensor& tangents) {
  return (at::GradMode::is_enabled() && requires_grad(tangents)) || has_tangent(tangents) ||
         at::functorch::maybeCurrentDynamicLayer() || !has_numbers(tangents);
}

Tensor checked_recorded_distances(const char* function, const Tensor& tangents) {
  const std::string place = c10::str("[", function, "] tangents");
  causal::check_numbers(place, tangents);
  TORCH_CHECK_VALUE(tangents.layout() == at::kStrided, place,
                    ": expected a dense tensor, got layout ", tangents.layout());
  TORCH_CHECK_VALUE(tangents.dim() == 2 && tangents.sym_size(1) > 0, place,
                    ": expected shape [M, d], got ", tangents.sym_sizes());
  if (has_numbers(tangents)) {
    const BelowTransforms below;
    causal::checked_tangents(function, below_transforms(tangents).reshape({-1, tangents.size(1)}));
  }
  return causal::recorded_distances(tangents);
}

}  // namespace

Tensor hyperbolic_distances(const Tensor& tangents) {
  constexpr const char* kName = "hyperbolic_distances";
  if (needs_recording(tangents)) return checked_recorded_distances(kName, tangents);
  const causal::Points points = causal::to_points(kName, tangents);
  as_function(kName, [&] { require_room("tangents", {points.count(), points.count()}); });
  Tensor squares = at::empty({points.count(), points.count()}, at::kDouble);
  double* rows = squares.mutable_data_ptr<double>();
  causal::on_threads(points.count(), [&](int64_t point) {
    Eigen::ArrayXd row(points.padded());
    kernels::hyperbolic_squares(points.one(point), points.all(), row.data());
    std::copy_n(row.data(), points.count(), rows + point * points.count());
  });
  return 2 * squares.sqrt().asinh();
}

namespace causal {
namespace {

using at::Tensor;

std::tuple<Tensor, Tensor, double, int64_t, std::string, int64_t, double> embed_by_name(
    const Tensor& adjacency, int64_t dimension, std::string_view optimiser, int64_t steps,
    std::optional<double> learning_rate, std::optional<int64_t> hops,
    std::optional<std::string_view> side, std::string_view weight, double decay,
    std::optional<int64_t> negatives, double generality, bool relative, double restart,
    std::string_view dangling, int64_t seed, bool balanced) {
  CausalEmbeddingOptions options;
  options.dimension = dimension;
  options.steps = steps;
  options.learning_rate = learning_rate;
  options.hops = hops;
  options.decay = decay;
  options.negatives = negatives;
  options.generality = generality;
  options.relative = relative;
  options.restart = restart;
  options.seed = seed;
  options.balanced = balanced;
  const Interruptible interruptible;
  options.checkpoint = [&](int64_t) { interruptible.check(); };
  as_function("causal_embed", [&] {
    options.optimiser = parse_name<EmbeddingOptimiser>("optimiser", optimiser);
    if (side) options.side = parse_name<AttractionSide>("side", *side);
    options.weight = parse_name<AttractionWeight>("weight", weight);
    options.dangling = parse_name<DanglingRule>("dangling", dangling);
  });
  CausalEmbedding made = causal_embed(adjacency, options);
  return {made.tangents,
          made.generality,
          made.loss,
          made.hops,
          std::string(name_of(made.side)),
          made.without_negatives,
          made.seconds};
}

std::tuple<double, double, int64_t> ranking(const Tensor& tangents, const Tensor& adjacency) {
  const CausalRanking made = causal_ranking(tangents, adjacency);
  return {made.mean_rank, made.map, made.pairs};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "causal_embed(Tensor adjacency, int dimension, str optimiser, int steps, float? "
      "learning_rate, int? hops, str? side, str weight, float decay, int? negatives, float "
      "generality, bool relative, float restart, str dangling, int seed, bool balanced=True) -> "
      "(Tensor, "
      "Tensor, float, int, str, int, float)",
      TORCH_FN(embed_by_name));
  m.def("causal_embedding_warning(Tensor tangents, Tensor? adjacency=None) -> str",
        TORCH_FN(causal_embedding_warning));
  m.def("causal_ranking(Tensor tangents, Tensor adjacency) -> (float, float, int)",
        TORCH_FN(ranking));
  m.def("hyperbolic_distances(Tensor tangents) -> Tensor", TORCH_FN(hyperbolic_distances));
}

}  // namespace
}  // namespace causal
}  // namespace nsimplex
