#include <ATen/ATen.h>

#include "cli/causal.h"
#include "cli/causal_study.h"
#include "training/clustering.h"
#include "training/metrics.h"

namespace nsimplex::cli {
namespace {

// Of the k-means clusters of a table against what is known, in percent as the paper has them.
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
  StudyLog log(o, table, "cluster", {"ari", "nmi", "asw"}, /*lower_is_better=*/false);
  return log.run([&] {
    for (int64_t s = 0; s < o.seeds; ++s) {
      const uint64_t seed = o.seed + static_cast<uint64_t>(s);
      const std::string trial = std::to_string(seed);
      log.add("k-means raw", trial, [&] {
        const at::Tensor raw = table.file.values.index_select(0, table.rows).nan_to_num(0);
        return cluster_scores(raw, labels, seed);
      });
      log.add("k-means imputed", trial,
              [&] { return cluster_scores(scaled(values), labels, seed); });
      log.add("k-means PCA", trial, [&] {
        return cluster_scores(training::principal_components(scaled(values), 20), labels, seed);
      });
      log.compare(study, seed, std::nullopt,
                  [&](const std::string& encoding, uint64_t, const auto& events) {
                    return cluster_scores(study.embed(encoding, seed, events), labels, seed);
                  });
    }
  });
}

}  // namespace

void add_causal_cluster(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<StudyOptions>();
  options->aggregate = "mean";
  options->restoring.epochs = 30;
  CLI::App& command = add_command(
      parent, session,
      {.name = "cluster",
       .summary = "Cluster embedded observations, with every encoding of the features",
       .examples =
           "nsimplex causal cluster proteins.csv --labels types.csv --threads 1 --out "
           "runs/cluster\n"
           "nsimplex causal cluster proteins.csv --labels types.csv --encodings none,cape --json\n"
           "nsimplex causal cluster --resume runs/cluster",
       .resumes = true,
       .inputs = {&options->table, &options->labels}},
      options, run_cluster);
  add_study_options(command, *options);
  add_feature_options(command, *options);
  option_adder(command, "Task")("--labels", options->labels,
                                "What the clusters are judged by: csv or tsv, a label a row, or "
                                "names of rows and labels")
      ->required();
}

}  // namespace nsimplex::cli
