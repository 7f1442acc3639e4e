// Declares summary statistics, classification metrics and the log of a training run.

#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/output_file.h"
#include "support/ranking_metrics.h"

// Summary statistics over a few runs, metrics of predictions against true labels, and the log of a
// training run (metrics.jsonl).
namespace nsimplex::training {

/// Metrics by name, in the order in which they are shown.
using Scores = std::vector<std::pair<std::string, double>>;

/// Mean of n values and its 95 % confidence interval, mean +- t s / sqrt(n) with Student's t of n -
/// 1 degrees of freedom and s the sample deviation. One value has an infinite interval.
struct Interval {
  double mean = 0.0, low = 0.0, high = 0.0;
  int64_t count = 0;
};
Interval confidence_interval(std::span<const double> values);

/// The mean of n values and their sample deviation, sqrt(sum of squares / (n - 1)). The deviation
/// is 0 for one value. Both are NaN without values.
struct Spread {
  double mean = 0.0, deviation = 0.0;
};
Spread spread(std::span<const double> values);

/// The least squares fit y = slope x + intercept. R^2 is 1 - residual variance / total variance.
struct Line {
  double slope = 0.0, intercept = 0.0, r_squared = 0.0;
};
Line fit_line(std::span<const double> x, std::span<const double> y);

// Metrics of predictions against true labels, in plain C++. All spans of a call have equal length.

using nsimplex::area_under_roc;
using nsimplex::average_precision;
using nsimplex::BinaryCounts;

/// F1 of one of several classes. micro counts all predictions equally and is the accuracy. macro is
/// the mean of each class's F1, over the classes that occur among the predictions or the labels.
/// Classes count from 0. NaN without predictions.
struct ClassF1 {
  double micro = 0.0, macro = 0.0;
};
ClassF1 class_f1(std::span<const int64_t> predicted, std::span<const int64_t> actual);

/// Metrics of two partitions of the same items, given as one number per item. Items with equal
/// numbers are in one part. The metrics are about pairs of items; a pair is positive if both are in
/// one part.
///
/// rand_index is the share of pairs on which both partitions agree. adjusted_rand_index is (RI -
/// E[RI]) / (1 - E[RI]) with the expectation over random partitions with parts of the same sizes
/// (Hubert and Arabie, "Comparing partitions", 1985). All are 1 for equal partitions. f1 is 0 if
/// only one of them has positive pairs. O(n log n).
struct PartitionScores {
  double f1 = 0.0, rand_index = 0.0, adjusted_rand_index = 0.0;
};
PartitionScores partition_scores(std::span<const int64_t> predicted,
                                 std::span<const int64_t> actual);

/// One line of metrics.jsonl.
struct Metrics {
  int64_t step = 0;                ///< number of updates
  double train_loss = 0.0;         ///< mean over the steps since the previous line, nats per token
  std::optional<double> val_loss;  ///< null if no validation was due
  double tokens_per_second = 0.0;  ///< over those steps, without validation and saving

  /// The loss of the indexers, beside train_loss; no field if none learns.
  std::optional<double> auxiliary_loss = std::nullopt;
};

/// The field `kind` of such a line.
inline constexpr const char* kMetricsKind = "training";
nlohmann::ordered_json to_json(const Metrics& metrics);

/// The file metrics.jsonl of a run: one JSON object per line, with ascending steps.
class MetricsLog {
 public:
  /// Opens or creates the file. It removes the lines that a run that continues after `step` will
  /// write again: those of later steps and a half-written last one. Throws InputError if the file
  /// cannot be written.
  MetricsLog(const std::string& path, int64_t step);

  /// Throws std::runtime_error if the line cannot be stored.
  void append(const Metrics& metrics);

  /// Flushes to disk, so that no line that a checkpoint includes is lost.
  void sync() { file_.sync(); }

 private:
  io::LineFile file_;
};

}  // namespace nsimplex::training
