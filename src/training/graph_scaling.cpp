#include "training/graph_scaling.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <nsimplex/graph_builders.h>
#include <nsimplex/graph_generators.h>

#include "training/peak_memory.h"
#include "training/stopwatch.h"

namespace nsimplex::training {

using at::Tensor;

GraphBatch scaling_graph(const ScalingGraphOptions& o, uint64_t seed) {
  const TupleBatch edges = barabasi_albert_graph(o.nodes, o.links, static_cast<int64_t>(seed));
  const DerivedTuples graph = edge_tuples(edges.tuples, o.nodes, {.loops = true});
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const Tensor of_nodes = at::randn({o.nodes, o.node_channels}, generator);
  const Tensor of_edges = at::randn({edges.size(), o.edge_channels}, generator);
  GraphBatch batch;
  batch.input = graph.batch;
  batch.features = node_and_edge_features(graph, of_nodes, of_edges);
  if (o.complete) {
    batch.input = complete_tuples(at::full({1}, o.nodes, at::kLong), 2);
    const Tensor& pairs = graph.batch.tuples;
    batch.features =
        at::zeros({o.nodes * o.nodes, o.node_channels + o.edge_channels})
            .index_copy_(0, pairs.select(1, 0) * o.nodes + pairs.select(1, 1), batch.features);
  }
  batch.output = project_tuples(batch.input, 0);
  return batch;
}

PassCost measure_pass(GraphModel& model, const GraphBatch& batch, bool forward_only) {
  const at::AutoGradMode gradients(!forward_only);
  PassCost cost;
  model.train();
  const PeakMemory memory;
  const Stopwatch plan;
  const GraphModel::Forward function = model.prepare(batch);
  cost.plan_seconds = plan.seconds();
  const Stopwatch forward;
  const Tensor out = function();
  cost.forward_seconds = forward.seconds();
  if (!forward_only) {
    const Stopwatch backward;
    out.sum().backward();
    cost.backward_seconds = backward.seconds();
  }
  cost.peak_bytes = memory.bytes();
  model.zero_grad(/*set_to_none=*/true);
  return cost;
}

}  // namespace nsimplex::training
