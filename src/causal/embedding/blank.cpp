#include "causal/embedding/blank.h"

#include <cstdint>
#include <vector>

#include "causal/embedding/points.h"

namespace nsimplex::causal {
namespace {

// Of the rows that are counted.
std::string why_blank(const Matrix& tangents, const std::vector<int64_t>& counted,
                      const char* nodes) {
  int64_t central = 0;
  bool apart = false;
  const Vector first = tangents.row(counted.front());
  for (const int64_t node : counted) {
    const Vector z = tangents.row(node);
    central += z.norm() < kBlankRadius;
    apart = apart || distance(first, z) >= kBlankRadius;
  }
  const auto all = std::to_string(counted.size());
  if (2 * central > std::ssize(counted)) {
    return std::to_string(central).append(" of ").append(all).append(nodes).append(
        " lie within 0.05 of the origin, so their angles carry nothing: a smaller "
        "generality or fewer hops keep them apart");
  }
  if (apart) return "";
  return std::string("all ").append(all).append(nodes).append(
      " lie in one point, so their angles tell none from another");
}

}  // namespace

std::string why_blank(const Matrix& tangents, const SparseGraph& graph) {
  std::vector<char> joined(static_cast<size_t>(graph.rows()), 0);
  for (int64_t node = 0; node < graph.rows(); ++node) {
    for (SparseGraph::InnerIterator edge(graph, node); edge; ++edge) {
      if (edge.value() == 0 || edge.col() == node) continue;
      joined[static_cast<size_t>(node)] = joined[static_cast<size_t>(edge.col())] = 1;
    }
  }
  std::vector<int64_t> counted;
  for (int64_t node = 0; node < graph.rows(); ++node) {
    if (joined[static_cast<size_t>(node)] != 0) counted.push_back(node);
  }
  if (counted.empty())
    return "the graph has no edges, so its points and their angles carry nothing";
  return why_blank(tangents, counted, " nodes with edges");
}

std::string why_blank(const Matrix& tangents) {
  std::vector<int64_t> counted;
  for (int64_t node = 0; node < tangents.rows(); ++node) counted.push_back(node);
  return counted.size() < 2 ? "" : why_blank(tangents, counted, " points");
}

}  // namespace nsimplex::causal
