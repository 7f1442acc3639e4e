#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <vector>

#include "training/graph_task.h"

namespace nsimplex::training {

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

}  // namespace nsimplex::training
