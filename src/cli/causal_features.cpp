// The commands `causal task classify`, `cluster` and `regress`, which compare feature encodings.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include "cli/causal_study.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "support/error.h"
#include "train/feature_study.h"
#include "train/scores.h"

namespace nsimplex::cli {
namespace {

int run_classify(const StudyOptions& o) {
  const training::FeatureStudyOptions settings = study_options(o);
  require_room_for_models(o);
  StudyTable table = study_table(o);
  const data::Labels labels = study_labels(o, table);
  const int64_t classes = std::ssize(labels.classes);
  std::vector<data::SplitRows> splits;
  for (int64_t split = 0; split < o.splits; ++split) {
    splits.push_back(
        data::stratified_split(labels, o.share, o.seed + static_cast<uint64_t>(split)));
    if (splits.back().second.numel() == 0) {
      throw InputError(
          fmt::format("--train: expected a share that leaves rows for testing, got {}", o.share));
    }
  }
  StudyLog log(o, table.read, "classify", {"accuracy", "f1"}, /*lower_is_better=*/false);
  return log.run([&] {
    for (int64_t split = 0; split < o.splits; ++split) {
      const data::SplitRows& rows = splits[static_cast<size_t>(split)];
      const auto part = [](const at::Tensor& all, const at::Tensor& chosen) {
        return all.index_select(0, chosen);
      };
      const at::Tensor& values = table.observations.values;
      training::FeatureStudy study(part(values, rows.first), part(values, rows.second), settings);
      const at::Tensor learned = part(labels.numbers, rows.first),
                       judged = part(labels.numbers, rows.second);
      log.refer("logistic regression", study, split, [&](const auto& pause) {
        return study.classify_linearly(learned, judged, classes, {.step = {}, .checkpoint = pause});
      });
      for (int64_t s = 0; s < o.seeds; ++s) {
        log.compare(study, o.seed + static_cast<uint64_t>(s), split,
                    [&](const std::string& encoding, uint64_t seed, const auto& events) {
                      const training::Scores scores =
                          study.classify(encoding, learned, judged, classes, seed, events);
                      keep_model(o, study, table, labels.classes, split, seed);
                      return scores;
                    });
      }
    }
  });
}

}  // namespace

void add_task_classify(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<StudyOptions>();
  options->seeds = 3;
  CLI::App& command = add_command(
      parent, session,
      {.name = "classify",
       .summary =
           "Classify observations (for example cell types) with every encoding of the features",
       .examples =
           "nsimplex causal task classify cells.csv --labels types.csv --threads 1 --out "
           "runs/cells\n"
           "nsimplex causal task classify counts.csv --labels types.csv --counts --columns 200\n"
           "nsimplex causal task classify cells.csv --labels types.csv --encodings none,cape "
           "--json\n"
           "nsimplex causal task classify --resume runs/cells",
       .resumes = true,
       .inputs = {&options->table, &options->labels},
       .named_after = [options] { return options->save_models ? options->table : ""; }},
      options, run_classify);
  add_study_options(command, *options);
  add_feature_options(command, *options);
  const auto add = option_adder(command, "Task");
  add("--labels", options->labels,
      "A csv or tsv with one label per row, or with names of rows and labels")
      ->type_name("FILE")
      ->required();
  add("--splits", options->splits, "Stratified splits of the rows")
      ->check(within(int64_t{1}, int64_t{1} << 20));
  add("--train", options->share, "Share of each class for training; the rest is for the test")
      ->check(within(0.0, 1.0));
  add_save_models(command, *options);
}

namespace {

// Scores of the k-means clusters of a table against the true labels, in percent as in the paper.
training::Scores cluster_scores(const at::Tensor& table, const data::Labels& labels,
                                uint64_t seed) {
  const at::Tensor found = training::k_means(table, std::ssize(labels.classes), seed);
  const auto span = [](const at::Tensor& each) {
    return std::span<const int64_t>(each.data_ptr<int64_t>(), static_cast<size_t>(each.numel()));
  };
  const at::Tensor known = labels.numbers.contiguous();
  return {{"ari", training::partition_scores(span(found), span(known)).adjusted_rand_index},
          {"nmi", training::normalised_mutual_information(found, known)},
          {"asw", training::silhouette(table, known)}};
}

at::Tensor scaled(const at::Tensor& values) {
  const at::Tensor deviation = values.std(0, /*unbiased=*/false);
  return (values - values.mean(0)) / deviation.masked_fill(deviation.eq(0), 1);
}

int run_cluster(const StudyOptions& o) {
  const training::FeatureStudyOptions options = study_options(o);
  StudyTable table = study_table(o);
  const data::Labels labels = study_labels(o, table);
  const at::Tensor& values = table.observations.values;
  training::FeatureStudy study(values, values, options);
  StudyLog log(o, table.read, "cluster", {"ari", "nmi", "asw"}, /*lower_is_better=*/false);
  return log.run([&] {
    for (int64_t s = 0; s < o.seeds; ++s) {
      const uint64_t seed = o.seed + static_cast<uint64_t>(s);
      const Json trial{{"trial", std::to_string(seed)}};
      log.add_fit("k-means raw", trial, [&](const auto&) {
        const at::Tensor raw = table.file.values.index_select(0, table.rows).nan_to_num(0);
        return cluster_scores(raw, labels, seed);
      });
      log.add_fit("k-means imputed", trial,
                  [&](const auto&) { return cluster_scores(scaled(values), labels, seed); });
      log.add_fit("k-means PCA", trial, [&](const auto&) {
        return cluster_scores(training::principal_components(scaled(values), 20), labels, seed);
      });
      log.compare(study, seed, std::nullopt,
                  [&](const std::string& encoding, uint64_t, const auto& events) {
                    const at::Tensor embedded = study.embed(encoding, seed, events);
                    training::Scores scores;
                    o.ranks->lead(
                        [&](const auto&) { scores = cluster_scores(embedded, labels, seed); },
                        events.checkpoint);
                    return scores;
                  });
    }
  });
}

}  // namespace

void add_task_cluster(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<StudyOptions>();
  options->aggregate = "mean";
  options->restoring.epochs = 30;
  CLI::App& command = add_command(
      parent, session,
      {.name = "cluster",
       .summary = "Cluster embedded observations with every encoding of the features",
       .examples = "nsimplex causal task cluster proteins.csv --labels types.csv --threads 1 --out "
                   "runs/cluster\n"
                   "nsimplex causal task cluster proteins.csv --labels types.csv --encodings "
                   "none,cape --json\n"
                   "nsimplex causal task cluster --resume runs/cluster",
       .resumes = true,
       .inputs = {&options->table, &options->labels}},
      options, run_cluster);
  add_study_options(command, *options);
  add_feature_options(command, *options);
  option_adder(command, "Task")("--labels", options->labels,
                                "True labels for evaluation: a csv or tsv with one label per row, "
                                "or with names of rows and labels")
      ->type_name("FILE")
      ->required();
}

namespace {

struct RegressOptions : StudyOptions {
  std::string target;
  int64_t parts = 8;
  double noise = 0.1;
};

// A synthetic target: the sum over `parts` random columns, in deviations, of w_j tanh(x_j), and of
// w_j x_j x_k over neighbours among them. The noise has a given share of its deviation.
at::Tensor made_target(const at::Tensor& values, const RegressOptions& o) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(o.seed);
  const at::Tensor columns = data::most_variable(values, o.columns);
  const int64_t parts = std::min(o.parts, columns.size(0));
  const at::Tensor chosen = columns.index_select(
      0, at::randperm(columns.size(0), generator, at::kLong).narrow(0, 0, parts));
  at::Tensor x = values.index_select(1, chosen);
  x = (x - x.mean(0)) / x.std(0, /*unbiased=*/false).clamp_min(1e-12);
  const at::Tensor weights = at::randn({2, parts}, generator, at::kDouble);
  const at::Tensor pure = (weights[0] * x.tanh() + 0.5 * weights[1] * x * x.roll(1, 1)).sum(1);
  const at::Tensor drawn = at::randn(pure.sizes(), generator, at::kDouble);
  return pure + o.noise * pure.std(/*unbiased=*/false) * drawn;
}

int run_regress(const RegressOptions& o) {
  const training::FeatureStudyOptions options = study_options(o);
  require_room_for_models(o);
  StudyTable table = study_table(o);
  const at::Tensor& values = table.observations.values;
  const at::Tensor target =
      o.target == "synthetic" ? made_target(values, o) : study_target(o.target, table);
  training::require_varying(target, "rows");
  const int64_t rows = values.size(0);
  const int64_t learned =
      std::clamp<int64_t>(std::llround(o.share * static_cast<double>(rows)), 2, rows - 1);
  std::vector<at::Tensor> orders;
  for (int64_t split = 0; split < o.splits; ++split) {
    const auto generator =
        at::make_generator<at::CPUGeneratorImpl>(o.seed + static_cast<uint64_t>(split));
    orders.push_back(at::randperm(rows, generator, at::kLong));
    const at::Tensor first = orders.back().narrow(0, 0, learned);
    training::require_varying(target.index_select(0, first), "rows to learn from");
  }
  StudyLog log(o, table.read, "regress", {"medae"}, /*lower_is_better=*/true);
  return log.run([&] {
    for (int64_t split = 0; split < o.splits; ++split) {
      const at::Tensor &order = orders[static_cast<size_t>(split)],
                       first = order.narrow(0, 0, learned),
                       second = order.narrow(0, learned, rows - learned);
      training::FeatureStudy study(values.index_select(0, first), values.index_select(0, second),
                                   options);
      const at::Tensor learned_target = target.index_select(0, first),
                       judged_target = target.index_select(0, second);
      log.refer("ridge regression", study, split,
                [&](const auto&) { return study.regress_linearly(learned_target, judged_target); });
      for (int64_t s = 0; s < o.seeds; ++s) {
        log.compare(study, o.seed + static_cast<uint64_t>(s), split,
                    [&](const std::string& encoding, uint64_t seed, const auto& events) {
                      const training::Scores scores =
                          study.regress(encoding, learned_target, judged_target, seed, events);
                      keep_model(o, study, table, {}, split, seed);
                      return scores;
                    });
      }
    }
  });
}

}  // namespace

void add_task_regress(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<RegressOptions>();
  options->seeds = 3;
  options->share = 0.7;
  options->target = "synthetic";
  options->aggregate = "mean";
  CLI::App& command = add_command(
      parent, session,
      {.name = "regress",
       .summary = "Predict a number per observation with every encoding of the features",
       .examples = "nsimplex causal task regress cells.csv --threads 1 --out runs/regress\n"
                   "nsimplex causal task regress methylation.csv --target age.csv --json\n"
                   "nsimplex causal task regress --resume runs/regress",
       .resumes = true,
       .inputs = {&options->table, &options->target},
       .named_after = [options] { return options->save_models ? options->table : ""; }},
      options, run_regress);
  add_study_options(command, *options);
  add_feature_options(command, *options);
  const auto add = option_adder(command, "Task");
  add("--target", options->target,
      "A file with one number per row, or with names of rows and numbers; or synthetic: a "
      "nonlinear function of random columns")
      ->type_name("FILE");
  add("--parts", options->parts, "Columns of a synthetic target")
      ->check(within(int64_t{1}, int64_t{1} << 20));
  add("--noise", options->noise, "Noise of a synthetic target, in units of its deviation")
      ->check(at_least_zero());
  add("--splits", options->splits, "Splits of the rows")
      ->check(within(int64_t{1}, int64_t{1} << 20));
  add("--train", options->share, "Share of the rows for training; the rest is for the test")
      ->check(within(0.0, 1.0));
  add_save_models(command, *options);
}

}  // namespace nsimplex::cli
