#include "training/feature_encodings.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "causal/structure/edge_price.h"
#include "support/error.h"
#include "support/log.h"
#include "training/euclidean_embedding.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

int64_t count_edges(const Tensor& graph) { return graph.ne(0).sum().item<int64_t>(); }

// The points of features in another order, drawn evenly.
Tensor shuffled(const Tensor& points, uint64_t seed) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return points.index_select(0, at::randperm(points.size(0), generator, at::kLong));
}

// Every feature keeps its distance from the origin and gets a direction that is drawn evenly.
Tensor redirected(const Tensor& points, uint64_t seed) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const Tensor drawn = at::randn(points.sizes(), generator, points.options());
  const auto length = [](const Tensor& rows) { return rows.norm(2, {1}, /*keepdim=*/true); };
  return drawn / length(drawn) * length(points);
}

}  // namespace

const std::vector<std::string>& encoding_names() {
  static const std::vector<std::string> names{
      "none",           "sinusoidal",   "cooccurrence",  "learned",     "relative",
      "cape",           "cape-scaled",  "cape-shuffled", "cape-random", "cape-correlation",
      "cape-euclidean", "cape-additive"};
  return names;
}

FeatureEncoding encoding_kind(const std::string& name) {
  const auto& names = encoding_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw InputError(
        fmt::format("encoding: expected one of {}, got {}", fmt::join(names, ", "), name));
  }
  if (name == "none") return FeatureEncoding::none;
  if (name == "sinusoidal") return FeatureEncoding::sinusoidal;
  if (name == "learned") return FeatureEncoding::learned;
  if (name == "relative") return FeatureEncoding::relative;
  const bool added = name == "cape-additive" || name == "cooccurrence";
  return added ? FeatureEncoding::additive : FeatureEncoding::rotary;
}

Tensor cooccurrence_vectors(const Tensor& observations, int64_t dim) {
  const Tensor median = std::get<0>(observations.median(0, /*keepdim=*/true));
  const Tensor high = observations.gt(median).to(at::kDouble);
  const Tensor together = at::matmul(high.t(), high), alone = together.diagonal();
  const Tensor chance = alone.unsqueeze(0) * alone.unsqueeze(1);
  // Features that are never high together, or at all, share nothing.
  const Tensor shared = at::log(static_cast<double>(observations.size(0)) * together / chance)
                            .nan_to_num(0, 0, 0)
                            .clamp_min(0)
                            .fill_diagonal_(0);
  const auto [values, vectors] = at::linalg_eigh(shared);
  const int64_t count = std::min<int64_t>(dim, values.size(0));
  Tensor chosen = (vectors * values.clamp_min(0).sqrt()).flip({1}).narrow(1, 0, count);
  // An eigenvector has no sign of its own: its largest entry is taken to be positive.
  const Tensor largest = chosen.gather(0, chosen.abs().argmax(0, /*keepdim=*/true));
  chosen = chosen * at::where(largest.lt(0), -1.0, 1.0);
  const Tensor length = chosen.square().sum(1).mean().sqrt();
  return at::constant_pad_nd(chosen / length.clamp_min(1e-12), {0, dim - count});
}

EncodingMaker::EncodingMaker(Tensor observations, EncodingOptions options)
    : observations_(std::move(observations)), options_(std::move(options)) {}

const CausalFit& EncodingMaker::structure() {
  if (!structure_) {
    const std::string warning =
        causal::few_rows_warning(observations_.size(0), observations_.size(1));
    if (!warning.empty()) log_warning_once("few rows", warning);
    structure_ = causal_fit(observations_, options_.structure);
  }
  return *structure_;
}

Tensor EncodingMaker::correlations() const {
  const Tensor correlation = observations_.t().corrcoef().abs().fill_diagonal_(0);
  return correlation.masked_fill(correlation.lt(options_.correlation), 0).nan_to_num(0);
}

const Tensor& EncodingMaker::causal_ball(const CausalEmbeddingOptions& embedding) {
  Tensor& ball = balls_[embedding.dimension];
  if (!ball.defined()) ball = ball_points(causal_embed(structure().adjacency, embedding).tangents);
  return ball;
}

MadeEncoding EncodingMaker::make(const std::string& name, const FeatureTransformerOptions& model,
                                 uint64_t seed) {
  const FeatureEncoding kind = encoding_kind(name);
  if (name == "cooccurrence") {
    return {.encoding = kind, .table = cooccurrence_vectors(observations_, model.dim)};
  }
  const bool additive = kind == FeatureEncoding::additive;
  if (!additive && kind != FeatureEncoding::rotary) return {.encoding = kind};
  const bool correlated = name == "cape-correlation", euclidean = name == "cape-euclidean";
  const Tensor graph = correlated ? correlations() : structure().adjacency;
  CausalEmbeddingOptions embedding = options_.embedding;
  embedding.dimension = additive ? model.dim : model.heads * feature_planes(model);
  if (const int64_t batch = options_.embedding_batch; batch > 0) {
    embedding.steps *= (observations_.size(1) + batch - 1) / batch;
  }
  MadeEncoding made{
      .encoding = kind, .learned_scale = name == "cape-scaled", .edges = count_edges(graph)};
  // Both geometries end in the unit ball: e = tanh(r / 2) u.
  Tensor ball = euclidean    ? ball_points(euclidean_embedding(graph, embedding))
                : correlated ? ball_points(causal_embed(graph, embedding).tangents)
                             : causal_ball(embedding);
  if (name == "cape-shuffled") ball = shuffled(ball, seed);
  if (name == "cape-random") ball = redirected(ball, seed);
  made.table = additive ? ball
                        : causal_angles(ball, {.heads = model.heads,
                                               .scale = options_.angle,
                                               .by_dimension = options_.by_dimension});
  // Of a graph of many, and of one split of many, once is enough.
  if (const std::string why = causal_embedding_warning(ball_tangents(ball), graph); !why.empty()) {
    log_warning_once(name, fmt::format("{}: {}", name, why));
  }
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
