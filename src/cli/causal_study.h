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

/// What `nsimplex causal classify`, `cluster` and `regress` have in common: encodings compared on a
/// table of observations.
namespace nsimplex::cli {

struct StudyOptions : FeatureExperimentOptions {
  std::string table, labels, values = "bins";
  TextFlags text;
  bool counts = false, save_models = false;
  int64_t columns = 100, splits = 5;
  double share = 0.3;
  double least_present = 0.1;
};

/// Adds the table and what is done to it first.
void add_study_options(CLI::App& command, StudyOptions& options);

/// The options as a study takes them.
training::FeatureStudyOptions study_options(StudyOptions options);

/// Adds --save-models, of the commands whose models answer for rows.
void add_save_models(CLI::App& command, StudyOptions& options);

/// The table of the file, and what is left of it after --counts and imputation; `rows`: which of
/// the file's rows that has; `read`: what was decided to read files, of the table and by option.
struct StudyTable {
  data::Observations file, observations;
  at::Tensor rows;
  Json read;
};
StudyTable study_table(const StudyOptions& options);

/// Labels, and numbers of the file of --target, of the rows that a table has kept.
data::Labels study_labels(const StudyOptions& options, StudyTable& table);
at::Tensor study_target(const std::string& path, StudyTable& table);

/// Throws InputError where --save-models has no folder to write to, or one with such a file in it.
void require_room_for_models(const StudyOptions& options);

/// Writes what a trial came to and keeps it for the summary.
class StudyLog {
 public:
  StudyLog(const StudyOptions& options, const StudyTable& table, std::string task,
           std::vector<std::string> figures, bool lower_is_better,
           std::map<std::string, training::Scores> published = {});

  /// Runs `trials`, then writes the summary and the table, also where Ctrl-C ended them.
  int run(const std::function<void()>& trials);

  /// Adds what `judge` gives, or, in a run that continues, what the earlier part of it has of this
  /// trial. `besides`: what else the line says, asked after `judge`.
  void add(
      const std::string& encoding, const std::string& trial,
      const std::function<training::Scores()>& judge,
      const std::function<Json()>& besides = [] { return Json::object(); });

  /// With --save-models: writes the model that `study` trained last, of columns with the names of
  /// `table` and with these classes, none where it answers numbers.
  void keep(const training::FeatureStudy& study, const StudyTable& table,
            const std::vector<std::string>& classes, int64_t split, uint64_t seed) const;

  /// Adds what a model gives that no seed changes and no encoding belongs to, once a split.
  void refer(const std::string& model, const training::FeatureStudy& study, int64_t split,
             const std::function<training::Scores()>& judge);

  /// Adds what `judge` gives for every chosen encoding with this seed. `split`: which of the
  /// splits, from 0, where there are some.
  using Judge = std::function<training::Scores(const std::string& encoding, uint64_t seed,
                                               const training::FeatureEvents& events)>;
  void compare(const training::FeatureStudy& study, uint64_t seed, std::optional<int64_t> split,
               const Judge& judge);

 private:
  const StudyOptions& options_;
  std::string task_;
  Json reading_;
  RunLog log_;
  FeatureResults results_;
};

}  // namespace nsimplex::cli
