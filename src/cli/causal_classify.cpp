#include <ATen/ATen.h>
#include <fmt/format.h>

#include "cli/causal.h"
#include "cli/causal_study.h"
#include "cli/interrupt.h"
#include "support/error.h"

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
          fmt::format("--share: expected a share that leaves rows to judge by, got {}", o.share));
    }
  }
  StudyLog log(o, table, "classify", {"accuracy", "f1"}, /*lower_is_better=*/false);
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
      log.refer("logistic regression", study, split, [&] {
        return study.classify_linearly(learned, judged, classes,
                                       {.step = {}, .checkpoint = [] { interrupt::check(); }});
      });
      for (int64_t s = 0; s < o.seeds; ++s) {
        log.compare(study, o.seed + static_cast<uint64_t>(s), split,
                    [&](const std::string& encoding, uint64_t seed, const auto& events) {
                      const training::Scores scores =
                          study.classify(encoding, learned, judged, classes, seed, events);
                      log.keep(study, table, labels.classes, split, seed);
                      return scores;
                    });
      }
    }
  });
}

}  // namespace

void add_causal_classify(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<StudyOptions>();
  options->seeds = 3;
  CLI::App& command = add_command(
      parent, session,
      {.name = "classify",
       .summary = "Classify observations (cell types), with every encoding of the features",
       .examples =
           "nsimplex causal classify cells.csv --labels types.csv --threads 1 --out runs/cells\n"
           "nsimplex causal classify counts.csv --labels types.csv --counts --columns 200\n"
           "nsimplex causal classify cells.csv --labels types.csv --encodings none,cape --json\n"
           "nsimplex causal classify --resume runs/cells",
       .resumes = true,
       .inputs = {&options->table, &options->labels}},
      options, run_classify);
  add_study_options(command, *options);
  add_feature_options(command, *options);
  const auto add = option_adder(command, "Task");
  add("--labels", options->labels, "csv or tsv: a label a row, or names of rows and labels")
      ->required();
  add("--splits", options->splits, "Stratified splits of the rows")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  add("--share", options->share, "Of each class, to learn from")->check(CLI::Range(0.0, 1.0));
  add_save_models(command, *options);
}

}  // namespace nsimplex::cli
