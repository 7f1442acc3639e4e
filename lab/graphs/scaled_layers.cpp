// Measures time and memory of a pass over one large graph.

#include "lab/graphs/scaled_layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <malloc.h>
#include <nsimplex/graph.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "support/stopwatch.h"

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

namespace {

// A value of /proc/self/status in bytes.
std::optional<int64_t> status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.compare(0, name.size(), name) != 0) continue;
    return std::stoll(line.substr(name.size())) * 1024;  // "VmHWM:   1234 kB"
  }
  return std::nullopt;
}

// Sets the high-water mark to the current resident memory.
bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

}  // namespace

PeakMemory::PeakMemory() {
  malloc_trim(0);
  if (reset_peak()) before_ = status_bytes("VmRSS:");
}

std::optional<int64_t> PeakMemory::bytes() const {
  const std::optional<int64_t> peak = status_bytes("VmHWM:");
  if (!before_ || !peak) return std::nullopt;
  return std::max<int64_t>(*peak - *before_, 0);
}

}  // namespace nsimplex::training
