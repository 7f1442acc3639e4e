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

/// What is learned on sets, graphs and hypergraphs, and by what.
namespace nsimplex::training {

/// Some graphs of a task, one after the other: what is known of their tuples and what is asked.
struct GraphBatch {
  TupleBatch input;     ///< E
  at::Tensor features;  ///< [m, d], of the tuples of E
  TupleBatch output;    ///< E', the tuples that a model answers for
  at::Tensor targets;   ///< m' rows, as the task's loss takes them
  at::Tensor kinds;     ///< int64 [B]: what graphs are told apart by in figures; often undefined
};

enum class GraphSplit { train, validation, test };

/// Figures by name, in the order in which they are shown.
using Scores = std::vector<std::pair<std::string, double>>;

/// Collects what a model says of a whole split, batch by batch.
class GraphScorer {
 public:
  virtual ~GraphScorer() = default;
  virtual void add(const at::Tensor& outputs, const GraphBatch& batch) = 0;

  /// The first one is what the best epoch is chosen by.
  virtual Scores scores() const = 0;
};

/// Graphs in three splits, a loss and figures.
class GraphTask {
 public:
  virtual ~GraphTask() = default;

  /// Examples of a split: at least one of each.
  virtual int64_t size(GraphSplit split) const = 0;

  /// The given examples of a split as one batch. What is drawn anew at every visit (negatives, for
  /// example) comes from `generator`.
  virtual GraphBatch batch(GraphSplit split, std::span<const int64_t> examples,
                           const at::Generator& generator) = 0;

  /// A number with a gradient, from what a model says [m', t].
  virtual at::Tensor loss(const at::Tensor& outputs, const GraphBatch& batch) const = 0;

  virtual std::unique_ptr<GraphScorer> scorer() const = 0;

  /// Whether the validation split is another one at every validation: what batches draw is drawn
  /// anew, and only whole batches of its examples, in random order, are judged by.
  virtual bool redraws_validation() const { return false; }

  /// Whether more of the first figure is better.
  virtual bool higher_is_better() const { return true; }

  /// Figures on the test split that need no model, by name: of the most frequent class, for
  /// example.
  virtual std::vector<std::pair<std::string, Scores>> references() const { return {}; }
};

/// What a task trains: parameters, and a function of them for each batch.
class GraphModel : public torch::nn::Module {
 public:
  using Forward = std::function<at::Tensor()>;

  /// The model on one batch: makes what depends on the tuples alone (plans, neighbours, encodings),
  /// once, and gives a function that computes [m', t] with the parameters of the moment, as often
  /// as wanted. It may refer to the model.
  virtual Forward prepare(const GraphBatch& batch) = 0;

  /// What is minimised besides, of the last forward; undefined: nothing.
  virtual at::Tensor auxiliary_loss() const { return {}; }

  /// Draws random features anew, where there are any: called before training steps.
  virtual void redraw_features() {}
};

/// One of the generators of a training with `seed`: 0 .. 3.
at::Generator graph_stream(uint64_t seed, uint64_t which);

/// A split, judged again and again: in its own order and always the same, or drawn anew each time.
class GraphJudge {
 public:
  GraphJudge(GraphTask& task, GraphModel& model, GraphSplit split, int64_t batch, uint64_t seed);

  /// What the model reaches after `step` updates.
  Scores scores(int64_t step);

  /// What it draws from.
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

/// What a training on graphs needs to go on from where it was, and the file that keeps it.

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
