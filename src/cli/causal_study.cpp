// The group `causal task`, and the options, data reading and logging that its tasks share.

#include "cli/causal_study.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/results.h"
#include "data/row_texts.h"
#include "nn/model_names.h"
#include "support/error.h"
#include "support/stopwatch.h"

namespace nsimplex::cli {

void add_study_options(CLI::App& command, StudyOptions& o) {
  const auto positive = within(int64_t{1}, int64_t{1} << 30);
  add_argument(command, "TABLE", o.table, "Observations in rows: csv or another text, npy, npz");
  const auto add = option_adder(command, "Table");
  command
      .add_flag("--counts", o.counts,
                "The values are counts of cells: remove rows with fewer than 200 nonzero values, "
                "scale sums to 1e4, then log(1 + x)")
      ->group("Table");
  add("--present", o.least_present,
      "Remove columns with values in a smaller share of the rows; impute other missing values from "
      "the 5 nearest rows")
      ->check(within(0.0, 1.0));
  add("--columns", o.columns, "Use only the most variable columns of the training rows")
      ->check(positive);
  add("--values", o.values, "Encoding of a value: bins, linear, periodic or general")
      ->check(one_of(names_of<FeatureValues>()));
  add("--bins", o.model.bins, "Number of bins for nonzero values")->check(positive);
  add_text_options(command, o.text, /*table=*/true);
}

void add_save_models(CLI::App& command, StudyOptions& o) {
  command
      .add_flag("--save-models", o.save_models,
                "Write the model of every trial into --out, for nsimplex causal predict")
      ->group("Task");
}

namespace {

std::string model_file(const std::string& encoding, int64_t split, uint64_t seed) {
  return fmt::format("model-{}-{}-{}.safetensors", encoding, split + 1, seed);
}

}  // namespace

void require_room_for_models(const StudyOptions& o) {
  if (!o.save_models) return;
  if (!o.resume.empty()) return;
  std::vector<std::string> names;
  for (const std::string& encoding : chosen_encodings(o)) {
    for (int64_t split = 0; split < o.splits; ++split) {
      for (int64_t s = 0; s < o.seeds; ++s) {
        names.push_back(model_file(encoding, split, o.seed + static_cast<uint64_t>(s)));
      }
    }
  }
  refuse_earlier_run(o, names);
}

training::FeatureStudyOptions study_options(StudyOptions o) {
  o.model.values = parse_name<FeatureValues>("--values", o.values);
  complete(o);
  return {.model = o.model,
          .restoring = o.restoring,
          .answering = o.answering,
          .making = o.making,
          .columns = o.columns,
          .ranks = o.ranks};
}

StudyTable study_table(const StudyOptions& o) {
  StudyTable table{.file = data::read_observations(o.table, {.text = text_options(o.text)}),
                   .observations = {},
                   .rows = {},
                   .read = {}};
  say_reading(o.text, o.table, size_of_table(table.file.values.size(0), table.file.values.size(1)),
              table.file.reading);
  table.read["table"] = to_json(table.file.reading);
  table.observations = table.file;
  table.rows = o.counts ? data::normalise_counts(table.observations)
                        : at::arange(table.observations.values.size(0), at::kLong);
  data::impute_missing(table.observations, o.least_present);
  return table;
}

data::Labels study_labels(const StudyOptions& o, StudyTable& table) {
  // Rows that --counts removed have labels too.
  data::Labels labels = data::read_labels(o.labels, table.file);
  say_reading(o.labels, fmt::format("{} labels", labels.numbers.size(0)), labels.reading);
  table.read["labels"] = to_json(labels.reading);
  labels.numbers = labels.numbers.index_select(0, table.rows);
  const int64_t rows = labels.numbers.numel(),
                different = std::get<0>(at::_unique(labels.numbers)).numel();
  if (different < 2 || different == rows) {
    throw InputError(
        fmt::format("--labels: expected at least two labels, and rows that share one; {} has {} "
                    "different labels for the {} rows",
                    o.labels, different, rows));
  }
  return labels;
}

at::Tensor study_target(const std::string& path, StudyTable& table) {
  const data::RowNumbers numbers = data::read_row_numbers(path, table.file);
  say_reading(path, fmt::format("{} numbers", numbers.values.size(0)), numbers.reading);
  table.read["target"] = to_json(numbers.reading);
  return numbers.values.index_select(0, table.rows);
}

StudyLog::StudyLog(const FeatureExperimentOptions& options, Json reading, std::string task,
                   std::vector<std::string> figures, bool lower_is_better,
                   std::map<std::string, training::Scores> published)
    : options_(options),
      task_(task),
      reading_(std::move(reading)),
      log_(options),
      results_(std::move(task), std::move(figures), lower_is_better, std::move(published)) {
  log_.share(*options.ranks);
}

int StudyLog::run(const std::function<void()>& trials, int digits) {
  const auto finish = [&] {
    for (const Json& line : results_.summary()) log_.write("encoding_mean", line);
    if (!options_.json) print(results_.table(digits));
  };
  try {
    trials();
  } catch (const Interrupted&) {
    finish();
    throw;
  }
  finish();
  log_.say_if_finished();
  return 0;
}

void StudyLog::add(const std::string& encoding, const Json& trial,
                   const std::function<training::Scores()>& judge,
                   const std::function<Json()>& besides) {
  Json line = {{"task", task_}, {"encoding", encoding}};
  line.update(trial);
  const Json& number = trial.front();
  const std::string name = number.is_string() ? number.get<std::string>() : number.dump();
  if (const Json* known = log_.find(line)) {
    log_.write("encoding_trial", *known);
    results_.add(encoding, name, scores_of(*known));
    return;
  }
  const training::Scores scores = judge();
  if (!options_.ranks->writes()) return;
  for (const auto& [name, value] : scores) line[name] = value;
  line.update(besides());
  log_.write("encoding_trial", line);
  results_.add(encoding, name, scores);
}

void keep_model(const StudyOptions& o, const training::FeatureStudy& study, const StudyTable& table,
                const std::vector<std::string>& classes, int64_t split, uint64_t seed) {
  if (!o.save_models || !o.ranks->writes()) return;
  training::FeatureModel model = study.last();
  model.classes = classes;
  model.counts = o.counts;
  const at::Tensor chosen = study.chosen().contiguous();
  for (int64_t column = 0; column < chosen.size(0); ++column) {
    const auto number = static_cast<size_t>(chosen.const_data_ptr<int64_t>()[column]);
    model.features.push_back(table.observations.features[number]);
  }
  training::write_feature_model(o.out + "/" + model_file(model.encoding, split, seed), model);
}

void StudyLog::add_fit(const std::string& model, const Json& trial, const Fit& fit,
                       const std::function<Json()>& besides) {
  training::Ranks& ranks = *options_.ranks;
  const auto judge = [&] {
    training::Scores scores;
    ranks.lead([&](const auto& pause) { scores = fit(pause); }, [&] { check_together(ranks); });
    return scores;
  };
  add(model, trial, judge, besides);
}

void StudyLog::refer(const std::string& model, const training::FeatureStudy& study, int64_t split,
                     const Fit& fit) {
  const Stopwatch watch;
  add_fit(model, {{"trial", fmt::format("{}", split + 1)}}, fit, [&] {
    return Json{{"read", reading_}, {"columns", study.columns()}, {"seconds", watch.seconds()}};
  });
}

void StudyLog::compare(const training::FeatureStudy& study, uint64_t seed,
                       std::optional<int64_t> split, const Judge& judge) {
  const std::string trial =
      split ? fmt::format("{}/{}", *split + 1, seed) : fmt::format("{}", seed);
  const std::string name =
      split ? fmt::format("split {} seed {}", *split + 1, seed) : fmt::format("seed {}", seed);
  for (const std::string& encoding : chosen_encodings(options_)) {
    const Stopwatch watch;
    add(
        encoding, {{"trial", trial}},
        [&] {
          return judge(encoding, seed,
                       watched(fmt::format("{} {} {}", task_, encoding, name), options_));
        },
        [&] {
          return Json{{"read", reading_},
                      {"edges", study.edges()},
                      {"columns", study.columns()},
                      {"parameters", study.parameters()},
                      {"seconds", watch.seconds()}};
        });
  }
}

void add_causal_task(CLI::App& parent, Session& session) {
  CLI::App& group = add_group(parent, "task", "Compare encodings of features in models of a task");
  add_task_classify(group, session);
  add_task_cluster(group, session);
  add_task_regress(group, session);
  add_task_perturb(group, session);
}

}  // namespace nsimplex::cli
