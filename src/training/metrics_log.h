#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/line_file.h"

namespace nsimplex::training {

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
