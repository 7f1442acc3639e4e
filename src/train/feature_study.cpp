// Compares feature encodings on tables, and computes k-means clusters and their metrics.

#include "train/feature_study.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/observations.h"
#include "support/error.h"
#include "train/feature_training.h"
#include "train/optimizer.h"
#include "train/scores.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

constexpr int64_t kMostRounds = 100;

// Observations at once, for answers and embeddings.
constexpr int64_t kRowsAtOnce = 256;

// Squared distances [N, k].
Tensor squares(const Tensor& x, const Tensor& centres) { return at::cdist(x, centres).square(); }

Tensor start_centres(const Tensor& x, int64_t k, const at::Generator& generator) {
  const int64_t first = at::randint(x.size(0), {1}, generator, at::kLong).item<int64_t>();
  Tensor centres = x.narrow(0, first, 1);
  while (centres.size(0) < k) {
    const Tensor nearest = std::get<0>(squares(x, centres).min(1));
    // If all rows are centres, any row may be next.
    const Tensor weight = nearest.sum().item<double>() > 0 ? nearest : at::ones_like(nearest);
    const Tensor next = at::multinomial(weight, 1, false, generator);
    centres = at::cat({centres, x.index_select(0, next)});
  }
  return centres;
}

// The number of rows with label i of a and label j of b, float64.
Tensor contingency(const Tensor& a, const Tensor& b) {
  const int64_t rows = a.max().item<int64_t>() + 1, columns = b.max().item<int64_t>() + 1;
  return at::bincount(a * columns + b, {}, rows * columns).view({rows, columns}).to(at::kDouble);
}

double entropy(const Tensor& shares) { return -at::xlogy(shares, shares).sum().item<double>(); }

}  // namespace

Tensor k_means(const Tensor& table, int64_t k, uint64_t seed, int64_t starts) {
  const Tensor x = table.to(at::kDouble);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  Tensor best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t start = 0; start < starts; ++start) {
    Tensor centres = start_centres(x, k, generator), clusters;
    for (int64_t round = 0; round < kMostRounds; ++round) {
      const Tensor nearest = squares(x, centres).argmin(1);
      if (clusters.defined() && at::equal(nearest, clusters)) break;
      clusters = nearest;
      const Tensor sizes = at::bincount(clusters, {}, k).to(at::kDouble).unsqueeze(1);
      const Tensor sums = at::zeros_like(centres).index_add_(0, clusters, x);
      centres = at::where(sizes.gt(0), sums / sizes.clamp_min(1), centres);
    }
    const double sum = std::get<0>(squares(x, centres).min(1)).sum().item<double>();
    if (sum < least) {
      least = sum;
      best = clusters;
    }
  }
  return best;
}

double normalised_mutual_information(const Tensor& a, const Tensor& b) {
  const Tensor joint = contingency(a, b) / static_cast<double>(a.size(0));
  const double of_a = entropy(joint.sum(1)), of_b = entropy(joint.sum(0));
  if (of_a + of_b == 0) return 1.0;
  return 2.0 * (of_a + of_b - entropy(joint)) / (of_a + of_b);
}

double silhouette(const Tensor& table, const Tensor& labels) {
  const Tensor x = table.to(at::kDouble);
  const Tensor member = at::one_hot(labels).to(at::kDouble);  // [N, classes]
  const Tensor sums = at::cdist(x, x).matmul(member), sizes = member.sum(0);
  const Tensor own_size = sizes.index_select(0, labels);
  const Tensor own = sums.gather(1, labels.unsqueeze(1)).squeeze(1) / (own_size - 1);
  const Tensor others =
      (sums / sizes)
          .masked_fill(member.logical_or(sizes.eq(0)), std::numeric_limits<double>::infinity());
  const Tensor nearest = std::get<0>(others.min(1));
  const Tensor score = (nearest - own) / at::maximum(own, nearest);
  return at::where(own_size.gt(1), score, at::zeros_like(score)).mean().item<double>();
}

Tensor principal_components(const Tensor& table, int64_t count) {
  const Tensor centred = table.to(at::kDouble) - table.to(at::kDouble).mean(0);
  const auto [u, values, vt] = at::linalg_svd(centred, /*full_matrices=*/false);
  const int64_t kept = std::min(count, values.size(0));
  return u.narrow(1, 0, kept) * values.narrow(0, 0, kept);
}

namespace {

using at::Tensor;

std::vector<int64_t> numbers(const Tensor& tensor) {
  const Tensor flat = tensor.to(at::kLong).contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

// The most variable columns, without constant ones.
Tensor useful_columns(const Tensor& values, int64_t count) {
  const Tensor columns = data::most_variable(values, count);
  const Tensor chosen = values.index_select(1, columns);
  const Tensor varies = chosen.amax(0).ne(chosen.amin(0));
  return columns.masked_select(varies);
}

Scores class_scores(const Tensor& answers, const Tensor& truth) {
  const ClassF1 f1 = class_f1(numbers(answers), numbers(truth));
  return {{"accuracy", 100 * f1.micro}, {"f1", 100 * f1.macro}};
}

Scores error_scores(const Tensor& answers, const Tensor& truth) {
  const Tensor error = answers - truth;
  const double r2 =
      1 - (error.square().sum() / (truth - truth.mean()).square().sum()).item<double>();
  return {{"medae", error.abs().median().item<double>()}, {"r2", r2}};
}

}  // namespace

void require_varying(const Tensor& target, const std::string& rows) {
  const double least = target.min().item<double>(), most = target.max().item<double>();
  // Equal numbers may differ in the last bits after a computation.
  constexpr double kRounding = 1e-12;
  if (most - least <= kRounding * std::max(std::abs(least), std::abs(most))) {
    throw InputError(fmt::format(
        "the target is constant: it is {} in all of the {} {}; nothing can be learned of it", least,
        target.numel(), rows));
  }
  if (!std::isfinite(target.std(/*unbiased=*/false).item<double>())) {
    throw InputError(fmt::format(
        "the target is too large: it goes from {} to {}, and the squares of that overflow", least,
        most));
  }
}

FeatureInputs feature_inputs(const Tensor& learn, const Tensor& judge,
                             const FeatureTransformerOptions& model) {
  const FeatureScale scale = feature_scale(learn, model);
  return {scaled_features(scale, learn), scaled_features(scale, judge)};
}

FeatureStudy::FeatureStudy(const Tensor& learn, const Tensor& judge,
                           const FeatureStudyOptions& options)
    : options_(options) {
  chosen_ = useful_columns(learn, options.columns);
  const Tensor& columns = chosen_;
  if (columns.size(0) < 2) {
    throw InputError(
        fmt::format("table: expected two columns that vary among the {} rows to learn from, got {}",
                    learn.size(0), columns.size(0)));
  }
  learn_ = learn.index_select(1, columns);
  judge_ = judge.index_select(1, columns);
  inputs_ = feature_inputs(learn_, judge_, options.model);
  maker_ = std::make_unique<EncodingMaker>(learn_, options.making);
}

FeatureTransformer FeatureStudy::restored(const std::string& encoding, int64_t outputs,
                                          uint64_t seed, const FeatureEvents& events) {
  Ranks& ranks = *options_.ranks;
  FeatureTransformerOptions shape = options_.model;
  shape.features = columns();
  shape.outputs = outputs;
  std::shared_ptr<FeatureTransformerImpl> general;
  if (shape.values == FeatureValues::general) {
    FeatureTransformerOptions plain = shape;
    plain.values = FeatureValues::linear;
    FeatureTransformer first = make_model(plain, {}, seed);
    restore_values(first, inputs_.learn, options_.restoring, seed, events, ranks);
    general = first.ptr();
  }
  const MadeEncoding made = maker_->make(encoding, shape, seed, events.checkpoint, ranks);
  FeatureTransformer model = make_model(shape, made, seed);
  if (general) model->set_general(general);
  edges_ = made.edges;
  parameters_ = parameter_count(*model);
  last_ = {};
  last_.encoding = encoding;
  last_.scale = feature_scale(learn_, shape);
  last_.model = model;
  last_.general = general;
  restore_values(model, inputs_.learn, options_.restoring, seed, events, ranks);
  return model;
}

Scores FeatureStudy::classify(const std::string& encoding, const Tensor& learn, const Tensor& judge,
                              int64_t classes, uint64_t seed, const FeatureEvents& events) {
  FeatureTransformer model = restored(encoding, classes, seed, events);
  Ranks& ranks = *options_.ranks;
  learn_answers(model, inputs_.learn, learn, options_.answering, seed, events, ranks);
  Scores scores;
  ranks.lead(
      [&](const auto& pause) {
        scores =
            class_scores(predict_all(model, inputs_.judge, kRowsAtOnce, pause).argmax(1), judge);
      },
      events.checkpoint);
  return scores;
}

Scores FeatureStudy::classify_linearly(const Tensor& learn, const Tensor& judge, int64_t classes,
                                       const FeatureEvents& events) const {
  const LinearAnswers found =
      logistic_regression(learn_, learn, classes, judge_, events.checkpoint);
  Scores scores = class_scores(found.answers, judge);
  scores.emplace_back("strength", found.strength);
  return scores;
}

Scores FeatureStudy::regress_linearly(const Tensor& learn, const Tensor& judge) const {
  require_varying(learn, "rows to learn from");
  const LinearAnswers found = ridge_regression(learn_, learn, judge_);
  Scores scores = error_scores(found.answers, judge);
  scores.emplace_back("strength", found.strength);
  return scores;
}

Scores FeatureStudy::regress(const std::string& encoding, const Tensor& learn, const Tensor& judge,
                             uint64_t seed, const FeatureEvents& events) {
  require_varying(learn, "rows to learn from");
  const double mean = learn.mean().item<double>(),
               deviation = learn.std(/*unbiased=*/false).item<double>();
  FeatureTransformer model = restored(encoding, 1, seed, events);
  last_.mean = mean;
  last_.deviation = deviation;
  const Tensor scaled = ((learn - mean) / deviation).to(at::kFloat).unsqueeze(1);
  Ranks& ranks = *options_.ranks;
  learn_answers(model, inputs_.learn, scaled, options_.answering, seed, events, ranks);
  Scores scores;
  ranks.lead(
      [&](const auto& pause) {
        const Tensor found = predict_all(model, inputs_.judge, kRowsAtOnce, pause).squeeze(1);
        scores = error_scores(found.to(at::kDouble) * deviation + mean, judge);
      },
      events.checkpoint);
  return scores;
}

Tensor FeatureStudy::embed(const std::string& encoding, uint64_t seed,
                           const FeatureEvents& events) {
  FeatureTransformer model = restored(encoding, 0, seed, events);
  Tensor embedded;
  options_.ranks->lead(
      [&](const auto& pause) { embedded = embed_all(model, inputs_.learn, kRowsAtOnce, pause); },
      events.checkpoint);
  return embedded;
}

}  // namespace nsimplex::training
