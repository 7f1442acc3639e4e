// Makes the feature encodings that studies compare, causal ones and baselines.

#include "train/feature_encodings.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "causal/embedding/embed.h"
#include "causal/tables/few_rows.h"
#include "causal/tensors.h"
#include "kernels/common/rounding.h"
#include "support/error.h"
#include "support/log.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

// The sum over h <= hops of decay^(h - 1) |A|^h, without the diagonal.
Tensor path_weights(const Tensor& adjacency, int64_t hops, double decay) {
  const Tensor magnitude = adjacency.to(at::kDouble).abs().fill_diagonal_(0);
  Tensor power = magnitude, sum = magnitude.clone();
  for (int64_t hop = 2; hop <= hops; ++hop) {
    power = decay * power.matmul(magnitude);
    sum += power;
  }
  return sum.fill_diagonal_(0);
}

// The magnitudes of the weights, without the diagonal.
Tensor weights(const Tensor& adjacency, bool balanced) {
  const Tensor magnitude = adjacency.to(at::kDouble).abs().fill_diagonal_(0).contiguous();
  if (!balanced) return magnitude;
  const causal::SparseGraph graph = causal::view_matrix(magnitude).sparseView();
  return causal::to_tensor(causal::Matrix(causal::balanced(graph)));
}

// log cosh of distances.
Tensor log_cosh(const Tensor& distance) {
  return distance + (-2 * distance).exp().log1p() - std::numbers::ln2;
}

}  // namespace

Tensor euclidean_embedding(const Tensor& given, const CausalEmbeddingOptions& options) {
  const int64_t nodes = given.size(0);
  const Tensor adjacency = weights(given, options.balanced);
  const Tensor paths = path_weights(adjacency, options.hops.value_or(2), options.decay);
  const Tensor joined = (paths + paths.t()).gt(0);
  const Tensor weight = options.weight == AttractionWeight::paths ? paths + paths.t() : adjacency;
  const Tensor others = joined.logical_not().fill_diagonal_(false);
  // The generality of nodes depends on the graph only, so no steps are necessary.
  CausalEmbeddingOptions none = options;
  none.steps = 0;
  const Tensor generality = causal_embed(given, none).generality;
  const Tensor attracted = weight.masked_fill(joined.logical_not(), 0).sum(1);
  const Tensor pull = causal::to_tensor(
      causal::pulls(causal::view_matrix(attracted.unsqueeze(1)).col(0).array(),
                    causal::view_matrix(generality.unsqueeze(1)).col(0).array(), options)
          .matrix());
  const Tensor strength = pull.squeeze(1);

  const auto generator = at::make_generator<at::CPUGeneratorImpl>(options.seed);
  Tensor points = 1e-2 * at::randn({nodes, options.dimension}, generator, at::kDouble);
  const double rate = options.learning_rate.value_or(0.1);
  for (int64_t step = 0; step < options.steps; ++step) {
    if (options.checkpoint) options.checkpoint(step);
    const Tensor at_step = points.detach().requires_grad_();
    const Tensor apart = at_step.unsqueeze(1) - at_step.unsqueeze(0);
    const Tensor distance = (apart.square().sum(2) + 1e-12).sqrt();
    const Tensor repelling = (-distance).exp().masked_fill(others.logical_not(), 0).sum(1, true);
    const Tensor attraction = weight * (distance + ((-distance).exp() + repelling).log());
    const Tensor radius = (at_step.square().sum(1) + 1e-12).sqrt();
    const Tensor loss = attraction.masked_select(joined).sum() +
                        (strength * (options.relative ? log_cosh(radius) : radius)).sum();
    const Tensor gradient = torch::autograd::grad({loss}, {at_step})[0];
    points = points - rate / static_cast<double>(nodes) * gradient;
  }
  return points;
}

namespace {

using at::Tensor;

int64_t count_edges(const Tensor& graph) { return graph.ne(0).sum().item<int64_t>(); }

// Of a table: features, heads and planes.
constexpr int64_t kMostDimensions = 3;

// The points of the features in a uniformly random order.
Tensor shuffled(const Tensor& points, uint64_t seed) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return points.index_select(0, at::randperm(points.size(0), generator, at::kLong));
}

// Every feature keeps its distance from the origin and gets a uniformly random direction.
Tensor redirected(const Tensor& points, uint64_t seed) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const Tensor drawn = at::randn(points.sizes(), generator, points.options());
  const auto length = [](const Tensor& rows) { return rows.norm(2, {1}, /*keepdim=*/true); };
  return drawn / length(drawn) * length(points);
}

}  // namespace

namespace {

// The encodings by name, and how the model uses each.
constexpr std::pair<std::string_view, FeatureEncoding> kEncodings[] = {
    {"none", FeatureEncoding::none},
    {"sinusoidal", FeatureEncoding::sinusoidal},
    {"cooccurrence", FeatureEncoding::additive},
    {"learned", FeatureEncoding::learned},
    {"relative", FeatureEncoding::relative},
    {"cape", FeatureEncoding::rotary},
    {"cape-scaled", FeatureEncoding::rotary},
    {"cape-shuffled", FeatureEncoding::rotary},
    {"cape-random", FeatureEncoding::rotary},
    {"cape-correlation", FeatureEncoding::rotary},
    {"cape-euclidean", FeatureEncoding::rotary},
    {"cape-additive", FeatureEncoding::additive}};

}  // namespace

const std::vector<std::string>& encoding_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [name, kind] : kEncodings) all.emplace_back(name);
    return all;
  }();
  return names;
}

FeatureEncoding encoding_kind(const std::string& name) {
  for (const auto& [known, kind] : kEncodings) {
    if (known == name) return kind;
  }
  throw InputError(
      fmt::format("encoding: expected one of {}, got {}", fmt::join(encoding_names(), ", "), name));
}

Tensor cooccurrence_vectors(const Tensor& observations, int64_t dim) {
  const Tensor median = std::get<0>(observations.median(0, /*keepdim=*/true));
  const Tensor high = observations.gt(median).to(at::kDouble);
  const Tensor together = at::matmul(high.t(), high), alone = together.diagonal();
  const Tensor chance = alone.unsqueeze(0) * alone.unsqueeze(1);
  // Features that are never large together have no association.
  const Tensor shared = at::log(static_cast<double>(observations.size(0)) * together / chance)
                            .nan_to_num(0, 0, 0)
                            .clamp_min(0)
                            .fill_diagonal_(0);
  const auto [values, vectors] = at::linalg_eigh(shared);
  const int64_t count = std::min<int64_t>(dim, values.size(0));
  Tensor chosen = (vectors * values.clamp_min(0).sqrt()).flip({1}).narrow(1, 0, count);
  // The sign of an eigenvector is arbitrary; its largest entry is made positive.
  const Tensor largest = chosen.gather(0, chosen.abs().argmax(0, /*keepdim=*/true));
  chosen = chosen * at::where(largest.lt(0), -1.0, 1.0);
  const Tensor length = chosen.square().sum(1).mean().sqrt();
  return at::constant_pad_nd(chosen / length.clamp_min(1e-12), {0, dim - count});
}

EncodingMaker::EncodingMaker(Tensor observations, EncodingOptions options)
    : observations_(std::move(observations)), options_(std::move(options)) {}

const CausalFit& EncodingMaker::learned(const std::function<void()>& checkpoint) {
  if (!structure_) {
    const Tensor table = observations_.contiguous();
    const std::string warning = causal::few_rows_warning(causal::view_matrix(table));
    if (!warning.empty()) log_warning_once("few rows", warning);
    CausalFitOptions options = options_.structure;
    if (checkpoint) options.checkpoint = checkpoint;
    structure_ = causal_fit(observations_, options);
  }
  return *structure_;
}

Tensor EncodingMaker::correlations() const {
  const Tensor correlation = observations_.t().corrcoef().abs().fill_diagonal_(0);
  return correlation.masked_fill(correlation.lt(options_.correlation), 0).nan_to_num(0);
}

const Tensor& EncodingMaker::causal_ball(const CausalEmbeddingOptions& embedding,
                                         const std::function<void()>& checkpoint) {
  Tensor& ball = balls_[embedding.dimension];
  if (!ball.defined())
    ball = ball_points(causal_embed(learned(checkpoint).adjacency, embedding).tangents);
  return ball;
}

MadeEncoding EncodingMaker::make(const std::string& name, const FeatureTransformerOptions& model,
                                 uint64_t seed, const std::function<void()>& checkpoint) {
  const FeatureEncoding kind = encoding_kind(name);
  if (name == "cooccurrence") {
    return {.encoding = kind, .table = cooccurrence_vectors(observations_, model.dim)};
  }
  const bool additive = kind == FeatureEncoding::additive;
  if (!additive && kind != FeatureEncoding::rotary) return {.encoding = kind};
  const bool correlated = name == "cape-correlation", euclidean = name == "cape-euclidean";
  const Tensor graph = correlated ? correlations() : learned(checkpoint).adjacency;
  CausalEmbeddingOptions embedding = options_.embedding;
  if (checkpoint) embedding.checkpoint = [&](int64_t) { checkpoint(); };
  embedding.dimension = additive ? model.dim : model.heads * feature_planes(model);
  if (const int64_t batch = options_.embedding_batch; batch > 0) {
    embedding.steps *= ceil_div(observations_.size(1), batch);
  }
  MadeEncoding made{
      .encoding = kind, .learned_scale = name == "cape-scaled", .edges = count_edges(graph)};
  // Both geometries give points in the unit ball: e = tanh(r / 2) u.
  Tensor ball = euclidean    ? ball_points(euclidean_embedding(graph, embedding))
                : correlated ? ball_points(causal_embed(graph, embedding).tangents)
                             : causal_ball(embedding, checkpoint);
  if (name == "cape-shuffled") ball = shuffled(ball, seed);
  if (name == "cape-random") ball = redirected(ball, seed);
  made.table = additive ? ball
                        : causal_angles(ball, {.heads = model.heads,
                                               .scale = options_.angle,
                                               .by_dimension = options_.by_dimension});
  // One warning is enough for all graphs and splits.
  if (const std::string why = causal_embedding_warning(ball_tangents(ball), graph); !why.empty()) {
    log_warning_once(name, fmt::format("{}: {}", name, why));
  }
  return made;
}

MadeEncoding EncodingMaker::make(const std::string& name, const FeatureTransformerOptions& model,
                                 uint64_t seed, const std::function<void()>& together,
                                 Ranks& ranks) {
  MadeEncoding made;
  ranks.lead([&](const auto& pause) { made = make(name, model, seed, pause); }, together);
  if (ranks.size() == 1) return made;
  // The other ranks know neither its shape nor whether there is a table.
  const bool has_table = made.table.defined();
  const Tensor form = at::zeros({4 + kMostDimensions}, at::kLong);
  int64_t* const places = form.mutable_data_ptr<int64_t>();
  if (ranks.rank() == 0) {
    places[0] = static_cast<int64_t>(made.encoding);
    places[1] = made.learned_scale ? 1 : 0;
    places[2] = made.edges;
    places[3] = has_table ? made.table.dim() : 0;
    if (has_table) std::ranges::copy(made.table.sizes(), places + 4);
  }
  ranks.copy_first(form);
  made.encoding = static_cast<FeatureEncoding>(places[0]);
  made.learned_scale = places[1] != 0;
  made.edges = places[2];
  if (places[3] == 0) return made;
  const at::IntArrayRef shape(places + 4, static_cast<size_t>(places[3]));
  made.table = has_table ? made.table.to(at::kDouble).contiguous() : at::empty(shape, at::kDouble);
  ranks.copy_first(made.table);
  return made;
}

FeatureTransformer make_model(FeatureTransformerOptions options, const MadeEncoding& encoding,
                              uint64_t seed) {
  options.encoding = encoding.encoding;
  options.learned_scale = encoding.learned_scale;
  FeatureTransformer model(options, at::make_generator<at::CPUGeneratorImpl>(seed));
  if (encoding.table.defined()) model->set_table(encoding.table);
  return model;
}

}  // namespace nsimplex::training
