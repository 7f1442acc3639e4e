// Declares graph tasks, models and their evaluation, and the saved state of a training.

#pragma once

#include <ATen/core/Generator.h>
#include <nsimplex/graph.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/safetensors.h"
#include "train/scores.h"

/// Tasks on sets, graphs and hypergraphs, and the models that learn them.
namespace nsimplex::training {

/// A batch of graphs of a task: features of their tuples, and targets.
struct GraphBatch {
  TupleBatch input;     ///< E
  at::Tensor features;  ///< [m, d], per tuple of E
  TupleBatch output;    ///< E', the tuples for which a model has outputs
  at::Tensor targets;   ///< m' rows, in the form that the task's loss takes
  at::Tensor kinds;     ///< int64 [B]: groups of graphs with separate metrics; often undefined
};

/// The rows of some graphs in a list that has one graph after the other.
struct ChosenRows {
  at::Tensor first, counts;  ///< int64 [B]: the first row and the number of rows of each graph
  at::Tensor rows;           ///< int64 [sum of counts]: one graph after the other
};

/// The rows of the graphs with these numbers, int64 [B]. Graph i has the rows offsets[i] to
/// offsets[i + 1] - 1.
ChosenRows rows_of(const at::Tensor& offsets, const at::Tensor& numbers);

enum class GraphSplit { train, validation, test };

/// Collects the outputs of a model for a whole split, batch by batch.
class GraphScorer {
 public:
  virtual ~GraphScorer() = default;
  virtual void add(const at::Tensor& outputs, const GraphBatch& batch) = 0;

  /// The first metric determines the best epoch.
  virtual Scores scores() const = 0;
};

/// Graphs in three splits, a loss and metrics.
class GraphTask {
 public:
  virtual ~GraphTask() = default;

  /// The number of examples of a split, at least one.
  virtual int64_t size(GraphSplit split) const = 0;

  /// The given examples of a split as one batch. `generator` gives all random numbers that change
  /// from visit to visit, for example negatives.
  virtual GraphBatch batch(GraphSplit split, std::span<const int64_t> examples,
                           const at::Generator& generator) = 0;

  /// The loss of the outputs [m', t] of a model: a scalar with a gradient.
  virtual at::Tensor loss(const at::Tensor& outputs, const GraphBatch& batch) const = 0;

  virtual std::unique_ptr<GraphScorer> scorer() const = 0;

  /// Whether validation changes every time. Then batches draw random numbers anew, and only whole
  /// batches of examples in random order count.
  virtual bool redraws_validation() const { return false; }

  /// Whether larger values of the first metric are better.
  virtual bool higher_is_better() const { return true; }

  /// Metrics on the test split that need no model, by name, for example those of the most frequent
  /// class.
  virtual std::vector<std::pair<std::string, Scores>> references() const { return {}; }
};

/// A model for a task: parameters, and a function of them per batch.
class GraphModel : public torch::nn::Module {
 public:
  using Forward = std::function<at::Tensor()>;

  /// The model on one batch. It computes once everything that depends on the tuples only (plans,
  /// neighbours, encodings). The returned function computes [m', t] with the current parameters,
  /// any number of times. It may refer to the model.
  virtual Forward prepare(const GraphBatch& batch) = 0;

  /// An additional loss of the last forward pass; undefined: none.
  virtual at::Tensor auxiliary_loss() const { return {}; }

  /// Draws new random features, if there are any. It is called before training steps.
  virtual void redraw_features() {}
};

/// One of the generators, 0 .. 3, of a training with `seed`.
at::Generator graph_stream(uint64_t seed, uint64_t which);

/// Evaluates a split repeatedly: in its own order and always the same, or with new random draws.
class GraphJudge {
 public:
  GraphJudge(GraphTask& task, GraphModel& model, GraphSplit split, int64_t batch, uint64_t seed);

  /// The metrics of the model after `step` updates.
  Scores scores(int64_t step);

  /// The generator of its random draws.
  at::Generator& draws() { return draws_; }

 private:
  struct Prepared {
    GraphBatch batch;
    GraphModel::Forward forward;
  };

  static void add(GraphScorer& scorer, const Prepared& each, int64_t step);
  at::Generator generator() const;
  std::vector<int64_t> examples();

  GraphTask& task_;
  GraphModel& model_;
  GraphSplit split_;
  int64_t batch_;
  uint64_t seed_;
  bool redraws_;
  at::Generator draws_;
  std::vector<Prepared> kept_;
};

/// The state that a training on graphs needs to continue, and its file.

/// The result of a validation after an epoch.
struct GraphPoint {
  int64_t epoch = 0, step = 0;
  double loss = 0.0;     ///< mean over the steps since the previous point
  Scores validation;     ///< of the whole split
  double seconds = 0.0;  ///< of training so far, without validation
};

/// The state between two steps of a training. Its tensors contain the rest under the names of
/// graph_training: weights, moments, averages, generators, the order of the epoch and the seconds
/// of each step.
struct GraphState {
  int64_t epoch = 1;     ///< current epoch, from 1
  int64_t begin = 0;     ///< number of its examples that are done
  int64_t improved = 0;  ///< epoch of the last improvement
  double loss = 0.0;     ///< sum over the steps since the last point
  int64_t loss_steps = 0;
  GraphPoint best, last;        ///< epoch 0: no validation yet
  std::vector<int64_t> splits;  ///< sizes of the task's splits, to detect another task
  std::vector<io::NamedTensor> tensors;
  std::string path = "the state of the training";  ///< of the file, for messages
};

/// Replaces the file atomically. `training` identifies the training in the words of the caller.
void write_graph_state(const std::string& path, const std::string& training,
                       const GraphState& state);

/// The state in a file if it belongs to that training. Returns std::nullopt if there is no file or
/// it belongs to another training. Throws InputError for a file that is damaged or something else.
std::optional<GraphState> read_graph_state(const std::string& path, const std::string& training);

}  // namespace nsimplex::training
