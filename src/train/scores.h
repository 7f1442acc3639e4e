#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/output_file.h"
#include "support/ranking_metrics.h"

// Summary statistics over a few runs, metrics of predictions against true labels, and the log of a
// training run (metrics.jsonl).
namespace nsimplex::training {

/// Mean of n values and its 95 % confidence interval, mean +- t s / sqrt(n) with Student's t of n -
/// 1 degrees of freedom and s the sample deviation. One value has an infinite interval.
struct Interval {
  double mean = 0.0, low = 0.0, high = 0.0;
  int64_t count = 0;
};
Interval confidence_interval(std::span<const double> values);

/// Mean of n values and their sample deviation, sqrt(sum of squares / (n - 1)); 0 for one value,
/// NaN both where there is none.
struct Spread {
  double mean = 0.0, deviation = 0.0;
};
Spread spread(std::span<const double> values);

/// Least squares of y = slope x + intercept. R^2 is 1 - residual / total variance.
struct Line {
  double slope = 0.0, intercept = 0.0, r_squared = 0.0;
};
Line fit_line(std::span<const double> x, std::span<const double> y);

// Figures of predictions against what is true. Plain C++; spans of a call have one length.

using nsimplex::area_under_roc;
using nsimplex::average_precision;
using nsimplex::BinaryCounts;

/// F1 of one of several classes: micro counts all predictions alike and is the accuracy; macro is
/// the mean of each class's F1, over the classes that were predicted or are true. Classes count
/// from 0. NaN without predictions.
struct ClassF1 {
  double micro = 0.0, macro = 0.0;
};
ClassF1 class_f1(std::span<const int64_t> predicted, std::span<const int64_t> actual);

/// Two partitions of the same things, as a number for each thing: equal numbers are one part.
/// Figures are about pairs of things, those together in a part being the positive ones.
///
/// rand_index is the share of pairs that both join or both separate; adjusted_rand_index is
/// (RI - E[RI]) / (1 - E[RI]) with the expectation over random partitions with parts of the same
/// sizes (Hubert and Arabie, "Comparing partitions", 1985). All are 1 where both partitions are
/// equal; f1 is 0 where only one of them joins any pair. O(n log n).
struct PartitionScores {
  double f1 = 0.0, rand_index = 0.0, adjusted_rand_index = 0.0;
};
PartitionScores partition_scores(std::span<const int64_t> predicted,
                                 std::span<const int64_t> actual);

/// One line of metrics.jsonl.
struct Metrics {
  int64_t step = 0;                ///< updates done
  double train_loss = 0.0;         ///< mean over the steps since the line before, nats a token
  std::optional<double> val_loss;  ///< null where no validation was due
  double tokens_per_second = 0.0;  ///< of those steps, without validation and saving

  /// The indexers' part of what was minimised, beside train_loss; no field where none learns.
  std::optional<double> auxiliary_loss = std::nullopt;
};

/// The field `kind` of such a line.
inline constexpr const char* kMetricsKind = "training";
nlohmann::ordered_json to_json(const Metrics& metrics);

/// The file metrics.jsonl of a run, one JSON object a line, steps ascending.
class MetricsLog {
 public:
  /// Opens or creates the file and drops what a run that continues after `step` will write again:
  /// lines beyond it and a half-written last one. Throws InputError when the file cannot be
  /// written.
  MetricsLog(const std::string& path, int64_t step);

  /// Throws std::runtime_error when the line cannot be stored.
  void append(const Metrics& metrics);

  /// Flushes to disk: what a checkpoint counts on must not be lost after it.
  void sync() { file_.sync(); }

 private:
  io::LineFile file_;
};

}  // namespace nsimplex::training
