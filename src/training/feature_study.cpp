#include "training/feature_study.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/observations.h"
#include "support/error.h"
#include "training/linear_references.h"
#include "training/metrics.h"
#include "training/parameters.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

std::vector<int64_t> numbers(const Tensor& tensor) {
  const Tensor flat = tensor.to(at::kLong).contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

// Columns that vary, the most variable ones.
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
  // What is left of equal numbers after a computation differs in the last bits.
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
  FeatureTransformerOptions shape = options_.model;
  shape.features = columns();
  shape.outputs = outputs;
  std::shared_ptr<FeatureTransformerImpl> general;
  if (shape.values == FeatureValues::general) {
    FeatureTransformerOptions plain = shape;
    plain.values = FeatureValues::linear;
    FeatureTransformer first = make_model(plain, {}, seed);
    restore_values(first, inputs_.learn, options_.restoring, seed, events);
    general = first.ptr();
  }
  const MadeEncoding made = maker_->make(encoding, shape, seed);
  FeatureTransformer model = make_model(shape, made, seed);
  if (general) model->set_general(general);
  edges_ = made.edges;
  parameters_ = parameter_count(*model);
  last_ = {};
  last_.encoding = encoding;
  last_.scale = feature_scale(learn_, shape);
  last_.model = model;
  last_.general = general;
  restore_values(model, inputs_.learn, options_.restoring, seed, events);
  return model;
}

Scores FeatureStudy::classify(const std::string& encoding, const Tensor& learn, const Tensor& judge,
                              int64_t classes, uint64_t seed, const FeatureEvents& events) {
  FeatureTransformer model = restored(encoding, classes, seed, events);
  learn_answers(model, inputs_.learn, learn, options_.answering, seed, events);
  return class_scores(predict_all(model, inputs_.judge).argmax(1), judge);
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
  learn_answers(model, inputs_.learn, scaled, options_.answering, seed, events);
  const Tensor answers =
      predict_all(model, inputs_.judge).squeeze(1).to(at::kDouble) * deviation + mean;
  return error_scores(answers, judge);
}

Tensor FeatureStudy::embed(const std::string& encoding, uint64_t seed,
                           const FeatureEvents& events) {
  FeatureTransformer model = restored(encoding, 0, seed, events);
  return embed_all(model, inputs_.learn);
}

}  // namespace nsimplex::training
