#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "training/graph_task.h"

/// What a training on graphs needs to go on from where it was, and the file that keeps it.
namespace nsimplex::training {

/// Where a training is after an epoch.
struct GraphPoint {
  int64_t epoch = 0, step = 0;
  double loss = 0.0;     ///< mean over the steps since the point before
  Scores validation;     ///< of the whole split
  double seconds = 0.0;  ///< of training so far, without validation
};

/// Between two steps of a training. Its tensors hold the rest: weights, moments, averages,
/// generators, the order of the epoch and the seconds of each step, by names that graph_training
/// gives them.
struct GraphState {
  int64_t epoch = 1;     ///< at work, from 1
  int64_t begin = 0;     ///< examples of it that have been learned from
  int64_t improved = 0;  ///< the epoch of the last gain
  double loss = 0.0;     ///< sum over the steps since the last point
  int64_t loss_steps = 0;
  GraphPoint best, last;        ///< of epoch 0: there is none yet
  std::vector<int64_t> splits;  ///< sizes of the task's splits, by which another task is noticed
  std::vector<io::NamedTensor> tensors;
};

/// Replaces the file atomically. `training` names the training, in the words of the caller.
void write_graph_state(const std::string& path, const std::string& training,
                       const GraphState& state);

/// The state in a file, where it is of that training; std::nullopt where there is no file or it is
/// of another one. Throws InputError for a file that is damaged or something else.
std::optional<GraphState> read_graph_state(const std::string& path, const std::string& training);

}  // namespace nsimplex::training
