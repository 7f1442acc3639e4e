// The options of commands that compare feature encodings, and the summary of their results.

#include "cli/feature_experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "causal/option_names.h"
#include "cli/output.h"
#include "nn/model_names.h"
#include "support/error.h"
#include "train/feature_model.h"
#include "train/scores.h"

namespace nsimplex::cli {

std::string interval_text(const training::Interval& of,
                          const std::function<std::string(double)>& format) {
  if (of.count == 0) return "-";
  if (of.count == 1) return format(of.mean) + " (one run)";
  return fmt::format("{} [{}, {}]", format(of.mean), format(of.low), format(of.high));
}

namespace {

// Makes a preset the default of all options that were not given, also in files and in the help.
void use_preset(CLI::App& command, FeatureExperimentOptions& o, const std::string& name) {
  const FeatureTransformerOptions model = feature_preset(name);
  const training::FeatureTrainingOptions training = training::preset_training(name);
  training::EncodingOptions making = o.making;
  use_preset_embedding(making);
  const auto set = [&](const char* option, auto& value, const auto& preset) {
    CLI::Option* known = command.get_option_no_throw(option);
    if (known == nullptr || known->count() > 0) return;
    value = preset;
    known->capture_default_str();
  };
  set("--width", o.model.dim, model.dim);
  set("--heads", o.model.heads, model.heads);
  set("--layers", o.model.layers, model.layers);
  set("--bins", o.model.bins, model.bins);
  set("--backbone", o.backbone, std::string(name_of(model.backbone)));
  set("--restore-epochs", o.restoring.epochs, training.epochs);
  set("--batch", o.answering.batch, training.batch);
  set("--lr", o.answering.learning_rate, training.learning_rate);
  set("--estimator", o.estimator, std::string(name_of(making.structure.estimator)));
  set("--threshold", o.threshold, *making.structure.threshold);
  set("--embed-steps", o.embedding.options.steps, making.embedding.steps);
  set("--embed-lr", o.embedding.learning_rate, *making.embedding.learning_rate);
  set("--embed-batch", o.making.embedding_batch, making.embedding_batch);
  set("--hops", o.embedding.hops, *making.embedding.hops);
  set("--generality", o.embedding.options.generality, making.embedding.generality);
  set("--absolute", o.embedding.absolute, !making.embedding.relative);
  set("--given-weights", o.embedding.given_weights, !making.embedding.balanced);
}

}  // namespace

void add_feature_options(CLI::App& command, FeatureExperimentOptions& o) {
  const auto& names = training::encoding_names();
  const auto positive = within(int64_t{1}, int64_t{1} << 30);
  const auto count = within(int64_t{0}, int64_t{1} << 30);
  const auto compare = option_adder(command, "Comparison");
  command
      .add_option("--encodings", o.encodings,
                  fmt::format("Encodings to compare; default: all of {}", fmt::join(names, ", ")))
      ->delimiter(',')
      ->check(one_of(names))
      ->group("Comparison");
  compare("--seeds", o.seeds, "Number of seeds, counted up from --seed")->check(positive);

  const auto shape = option_adder(command, "Model");
  command
      .add_option("--preset", o.preset,
                  fmt::format("Use the defaults of a model of the paper: {}",
                              fmt::join(feature_preset_names(), ", ")))
      ->check(one_of(feature_preset_names()))
      ->each([&](const std::string& name) { use_preset(command, o, name); })
      ->group("Model");
  shape("--backbone", o.backbone, "Attention: softmax, performer or simplicial (determinants)")
      ->check(one_of(names_of<FeatureBackbone>()));
  shape("--order", o.model.order, "Key axes of simplicial")->check(within(1, 7));
  shape("--width", o.model.dim, "Width")->check(positive);
  shape("--heads", o.model.heads, "Attention heads")->check(positive);
  shape("--layers", o.model.layers, "Blocks")->check(positive);
  shape("--aggregate", o.aggregate, "How tokens are combined into an observation: mean, max or cls")
      ->check(one_of(names_of<FeatureAggregate>()));
  shape(
      "--identity", o.identity,
      "Add a learned vector per feature to every encoding: none (the paper's protocol) or learned")
      ->check(one_of({"none", "learned"}));

  const auto train = option_adder(command, "Training");
  train("--restore-epochs", o.restoring.epochs,
        "Epochs of pretraining, which restores masked values")
      ->check(count);
  train("--epochs", o.answering.epochs, "Epochs of training for the task")->check(count);
  train("--batch", o.answering.batch, "Observations per step")->check(positive);
  train("--lr", o.answering.learning_rate, "Learning rate")->check(above_zero());
  train("--mask", o.restoring.mask, "Share of the values that are masked")->check(within(0.0, 1.0));

  const auto encode = option_adder(command, "Encoding");
  encode("--estimator", o.estimator,
         "Estimator of the causal graph: order, logdet, paper, paper-lowrank, lowrank, notears, "
         "spectral")
      ->check(one_of(names_of<StructureEstimator>()));
  command
      .add_flag("--standardise", o.making.structure.standardise,
                "Scale columns to variance 1 before the graph is learned")
      ->group("Encoding");
  encode("--threshold", o.threshold,
         "Leave out edges with a smaller |weight|; below 0: the estimator's default");
  encode("--correlation", o.making.correlation,
         "Of cape-correlation: leave out edges with a smaller |correlation|")
      ->check(within(0.0, 1.0));
  encode("--sparsity", o.sparsity,
         "Penalty on the sizes of weights (l1 norm): the larger, the fewer edges; below 0: the "
         "estimator's default");
  add_embedding_flags(command, o.embedding, "Encoding", /*training=*/true);
  encode("--embed-batch", o.making.embedding_batch,
         "Nodes per step, with epochs in --embed-steps; 0: all nodes in every step")
      ->check(count);
  encode("--angle", o.making.angle, "Angle in radians for a coordinate of 1")
      ->check(at_least_zero());
  command.add_flag("--by-dimension", o.making.by_dimension, "Multiply angles by sqrt(dimension)")
      ->group("Encoding");
}

void complete(FeatureExperimentOptions& o) {
  o.model.backbone = parse_name<FeatureBackbone>("--backbone", o.backbone);
  o.model.aggregate = parse_name<FeatureAggregate>("--aggregate", o.aggregate);
  o.model.identity = o.identity == "learned";
  o.making.structure.estimator = parse_name<StructureEstimator>("--estimator", o.estimator);
  if (o.threshold >= 0) o.making.structure.threshold = o.threshold;
  if (o.sparsity >= 0) o.making.structure.sparsity = o.sparsity;
  o.making.embedding = embedding_options(o.embedding);
  o.restoring.batch = o.answering.batch;
  o.restoring.learning_rate = o.answering.learning_rate;
  if (o.answering.batch < o.ranks->size()) {
    throw InputError(fmt::format("--batch: expected at least the {} ranks, got {}", o.ranks->size(),
                                 o.answering.batch));
  }
  // An invalid model is reported before anything is written or trained.
  FeatureTransformerOptions shape = o.model;
  shape.features = 1;
  for (const std::string& name : chosen_encodings(o)) {
    shape.encoding = training::encoding_kind(name);
    FeatureTransformer model(shape);
  }
  training::check(o.restoring);
  training::check(o.answering);
}

void check_together(training::Ranks& ranks) {
  if (ranks.any(interrupt::requested())) throw Interrupted();
}

training::FeatureEvents watched(const std::string& label, const CommonOptions& options) {
  const bool quiet = options.json;
  const auto bar = std::make_shared<std::unique_ptr<ProgressBar>>();
  return {.step =
              [=](int64_t done, int64_t of, double loss) {
                if (done == 1) *bar = std::make_unique<ProgressBar>(label, of, quiet);
                (*bar)->update(done, fmt::format("loss {:.4f}", loss));
              },
          .checkpoint = [ranks = options.ranks] { check_together(*ranks); }};
}

std::vector<std::string> chosen_encodings(const FeatureExperimentOptions& o) {
  std::vector<std::string> chosen;
  for (const std::string& name : training::encoding_names()) {
    const bool asked = std::find(o.encodings.begin(), o.encodings.end(), name) != o.encodings.end();
    const bool fits = name != "relative" || o.backbone == "softmax";
    if (asked || (o.encodings.empty() && fits)) chosen.push_back(name);
  }
  return chosen;
}

namespace {

constexpr char kOurs[] = "cape";

}  // namespace

FeatureResults::FeatureResults(std::string task, std::vector<std::string> figures,
                               bool lower_is_better,
                               std::map<std::string, training::Scores> published)
    : task_(std::move(task)),
      figures_(std::move(figures)),
      lower_is_better_(lower_is_better),
      published_(std::move(published)) {}

std::vector<double> FeatureResults::gains(const std::string& encoding,
                                          const std::string& figure) const {
  if (encoding == kOurs) return {};
  std::vector<double> gains = results_.differences(kOurs, encoding, figure);
  if (lower_is_better_) std::ranges::transform(gains, gains.begin(), std::negate<>());
  return gains;
}

std::vector<Json> FeatureResults::summary() const {
  std::vector<Json> lines;
  for (const std::string& encoding : results_.models()) {
    Json line = {{"task", task_}, {"encoding", encoding}, {"trials", results_.trials(encoding)}};
    for (const std::string& figure : figures_) {
      results_.write(line, encoding, figure, figure);
      const std::vector<double> better = gains(encoding, figure);
      if (better.empty()) continue;
      const training::Interval interval = training::confidence_interval(better);
      line["cape_better_by_" + figure] = {interval.mean, interval.low, interval.high};
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string FeatureResults::table(int digits) const {
  if (results_.models().empty()) return "";
  std::vector<std::string> header{"encoding"};
  for (const std::string& figure : figures_) {
    header.push_back(figure);
    header.push_back("cape better by");
    if (!published_.empty()) header.push_back("paper");
  }
  Table table(header);
  for (const std::string& encoding : results_.models()) {
    std::vector<std::string> row{encoding};
    for (const std::string& figure : figures_) {
      row.push_back(results_.cell(encoding, figure, digits));
      const std::vector<double> better = gains(encoding, figure);
      const auto shown = [&](double value) { return fmt::format("{:+.{}f}", value, digits); };
      row.push_back(better.empty() ? ""
                                   : interval_text(training::confidence_interval(better), shown));
      if (published_.empty()) continue;
      const auto found = published_.find(encoding);
      const double paper =
          found == published_.end() ? std::nan("") : value_of(found->second, figure);
      row.push_back(std::isnan(paper) ? "" : fmt::format("{:.3f}", paper));
    }
    table.add(std::move(row));
  }
  return table.text();
}

}  // namespace nsimplex::cli
