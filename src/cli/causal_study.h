// Declares what the tasks of `causal task` share.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/feature_experiment.h"
#include "cli/run_folder.h"
#include "cli/text_flags.h"
#include "data/observations.h"
#include "train/feature_study.h"

/// Shared code of `nsimplex causal task`, whose tasks compare encodings of features.
namespace nsimplex::cli {

/// Of `classify`, `cluster` and `regress`, which have a table of observations.
struct StudyOptions : FeatureExperimentOptions {
  std::string table, labels, values = "bins";
  TextFlags text;
  bool counts = false, save_models = false;
  int64_t columns = 100, splits = 5;
  double share = 0.3;
  double least_present = 0.1;
};

/// Adds the table and its preprocessing.
void add_study_options(CLI::App& command, StudyOptions& options);

/// The options in the form that a study takes.
training::FeatureStudyOptions study_options(StudyOptions options);

/// Adds --save-models, for commands whose models predict rows.
void add_save_models(CLI::App& command, StudyOptions& options);

/// The table of the file after --counts and imputation. `rows`: the rows of the file that remain.
/// `read`: the decisions made while reading files, of the table and per option.
struct StudyTable {
  data::Observations file, observations;
  at::Tensor rows;
  Json read;
};
StudyTable study_table(const StudyOptions& options);

/// Labels, and the numbers in the file of --target, for the rows that the table has kept.
data::Labels study_labels(const StudyOptions& options, StudyTable& table);
at::Tensor study_target(const std::string& path, StudyTable& table);

/// Throws InputError if --save-models has no folder, or one that holds such a file already.
void require_room_for_models(const StudyOptions& options);

/// Writes the result of each trial and keeps it for the summary. All ranks call the same functions;
/// rank 0 keeps results, and the others only know which trials an earlier part of the run has.
class StudyLog {
 public:
  /// `reading`: the decisions made while reading files.
  StudyLog(const FeatureExperimentOptions& options, Json reading, std::string task,
           std::vector<std::string> figures, bool lower_is_better,
           std::map<std::string, training::Scores> published = {});

  /// Runs `trials`, then writes the summary and the table, also after Ctrl-C.
  int run(const std::function<void()>& trials, int digits = 2);

  /// Writes a line of another kind.
  void write(std::string_view kind, const Json& line) { log_.write(kind, line); }

  /// Adds the result of `judge`, or, in a run that continues, the result that the earlier part has
  /// for this trial: {"seed": 1} or {"trial": "1/1"}. `besides`: further fields of the line, computed
  /// after `judge`.
  void add(
      const std::string& encoding, const Json& trial,
      const std::function<training::Scores()>& judge,
      const std::function<Json()>& besides = [] { return Json::object(); });

  /// Adds the result of a fit that one rank computes; the others wait. `pause` is that of
  /// training::Ranks::lead().
  using Fit = std::function<training::Scores(const std::function<void()>& pause)>;
  void add_fit(
      const std::string& model, const Json& trial, const Fit& fit,
      const std::function<Json()>& besides = [] { return Json::object(); });

  /// Adds the result of a fit that depends on no seed and no encoding, once per split.
  void refer(const std::string& model, const training::FeatureStudy& study, int64_t split,
             const Fit& fit);

  /// Adds the result of `judge` for every chosen encoding with this seed. `split`: the number of
  /// the split, from 0, if there are several.
  using Judge = std::function<training::Scores(const std::string& encoding, uint64_t seed,
                                               const training::FeatureEvents& events)>;
  void compare(const training::FeatureStudy& study, uint64_t seed, std::optional<int64_t> split,
               const Judge& judge);

 private:
  const FeatureExperimentOptions& options_;
  std::string task_;
  Json reading_;
  RunLog log_;
  FeatureResults results_;
};

/// With --save-models: writes the model that `study` trained last, with the names of the columns of
/// `table` and these classes (none for a model that predicts numbers).
void keep_model(const StudyOptions& options, const training::FeatureStudy& study,
                const StudyTable& table, const std::vector<std::string>& classes, int64_t split,
                uint64_t seed);

}  // namespace nsimplex::cli
