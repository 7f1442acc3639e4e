// Declares the writers of --log.

#pragma once

#include <array>
#include <memory>

#include "cli/options.h"
#include "cli/python_program.h"

namespace nsimplex::cli {

/// The names that --log takes, which are those of WRITERS in Python.
inline constexpr std::array kRunWriters{"tensorboard", "wandb", "mlflow"};

/// The writers of --log: TensorBoard, Weights & Biases, MLflow. A Python process beside the command
/// follows metrics.jsonl of the run and hands them its lines. It never holds up the training.
class RunWriters {
 public:
  /// Throws InputError if a writer is named twice or not installed.
  explicit RunWriters(const CommonOptions& options);

  /// metrics.jsonl is there and has no lines of an earlier run. Calls after the first do nothing.
  void begin();

 private:
  PythonCompanion program_;
  bool begun_ = false;
};

/// The writers of a command; none without --log, and on ranks that write nothing. A run that
/// continues has those it began with, unless others are given.
std::unique_ptr<RunWriters> start_writers(CommonOptions& options);

}  // namespace nsimplex::cli
