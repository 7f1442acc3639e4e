// The operator that writes a graph as text for other programs.

#include <ATen/ATen.h>
#include <torch/library.h>

#include <string>
#include <string_view>
#include <vector>

#include "causal/graph/graph_text.h"
#include "causal/tensors.h"

namespace nsimplex::causal {
namespace {

// `open` marks edges of open direction. `format`: dot, gml or graphml.
std::string graph_text(const at::Tensor& weights, const std::optional<at::Tensor>& open,
                       std::vector<std::string> names, std::string_view format) {
  const at::Tensor given = checked_graph("[causal_graph_text] weights", weights);
  NamedGraph graph{std::move(names), view_matrix(given)};
  const int64_t count = graph.weights.rows();
  as_function("causal_graph_text",
              [&] { require_one_per_column("names", graph.names.size(), count); });
  if (open) {
    const at::Tensor marks = checked_graph("[causal_graph_text] open", *open);
    TORCH_CHECK_VALUE(marks.size(0) == count, "[causal_graph_text] open: expected [", count, ", ",
                      count, "], got ", marks.sizes());
    graph.open = view_matrix(marks);
  }
  if (format == "dot") return dot(graph);
  if (format == "gml") return gml(graph);
  TORCH_CHECK_VALUE(format == "graphml",
                    "[causal_graph_text] format: expected dot, gml or graphml, got ", format);
  return graphml(graph);
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("causal_graph_text(Tensor weights, Tensor? open, str[] names, str format) -> str",
        TORCH_FN(graph_text));
}

}  // namespace
}  // namespace nsimplex::causal
