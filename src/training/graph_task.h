#pragma once

#include <ATen/core/Generator.h>
#include <nsimplex/graph.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace nsimplex::training
