#include "graph/tuple_faults.h"

namespace nsimplex::graph {
namespace {

using Fault = std::optional<std::string>;

// Numbers of nodes that no memory holds come from damaged files; here they are still a clear error.
constexpr int64_t kMostNodes = int64_t{1} << 40;

std::string text(int64_t number) { return std::to_string(number); }

Fault find_entry_fault(const TupleView& batch, const std::string& name, int64_t graph,
                       int64_t row) {
  const auto tuple = batch.tuples[row];
  const int64_t begin = batch.node_offsets[graph], end = batch.node_offsets[graph + 1];
  for (const int64_t node : tuple) {
    if (node < begin || node >= end) {
      return name + ": expected nodes " + text(begin) + " to " + text(end - 1) + " in graph " +
             text(graph) + ", got " + text(node) + " in row " + text(row);
    }
  }
  if (batch.symmetry == Symmetry::loop_free) {
    for (size_t i = 1; i < tuple.size(); ++i) {
      const auto before = tuple.first(i);
      if (std::find(before.begin(), before.end(), tuple[i]) != before.end()) {
        return name + ": expected distinct nodes in a loop-free tuple, got " + to_string(tuple) +
               " in row " + text(row);
      }
    }
  }
  if (batch.symmetry == Symmetry::undirected && !std::is_sorted(tuple.begin(), tuple.end())) {
    return name + ": expected ascending nodes in an undirected tuple, got " + to_string(tuple) +
           " in row " + text(row);
  }
  return std::nullopt;
}

Fault find_repetition(const TupleView& batch, const std::string& name) {
  const Rows& tuples = batch.tuples;
  if (tuples.width == 0) {
    for (int64_t graph = 0; graph < batch.graphs(); ++graph) {
      const int64_t rows = batch.tuple_offsets[graph + 1] - batch.tuple_offsets[graph];
      if (rows > 1) {
        return name + ": expected the empty tuple at most once in a graph, got " + text(rows) +
               " times in graph " + text(graph);
      }
    }
    return std::nullopt;
  }
  // Nodes are numbered through the batch, so equal rows are of one graph.
  const SortedRows sorted = sort_rows(tuples, batch.node_offsets.back());
  const Rows rows{sorted.values.data(), tuples.count, tuples.width};
  for (int64_t i = 1; i < rows.count; ++i) {
    if (rows_equal(rows, i - 1, i)) {
      return name + ": expected every tuple once, got " + to_string(rows[i]) + " in rows " +
             text(sorted.order[i - 1]) + " and " + text(sorted.order[i]);
    }
  }
  return std::nullopt;
}

}  // namespace

Fault find_offset_fault(const char* name, std::span<const int64_t> offsets) {
  const std::string argument = name;
  if (offsets.empty()) return argument + ": expected at least one entry, got none";
  if (offsets[0] != 0) return argument + ": expected 0 first, got " + text(offsets[0]);
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      return argument + ": expected numbers that do not fall, got " + text(offsets[i]) + " after " +
             text(offsets[i - 1]) + " at " + std::to_string(i);
    }
  }
  return std::nullopt;
}

std::string to_string(std::span<const int64_t> tuple) {
  std::string result = "(";
  for (size_t i = 0; i < tuple.size(); ++i) result += (i == 0 ? "" : ", ") + text(tuple[i]);
  return result + ")";
}

Fault find_tuple_fault(const TupleView& batch, const char* tuples) {
  if (Fault fault = find_offset_fault("tuple_offsets", batch.tuple_offsets)) return fault;
  if (Fault fault = find_offset_fault("node_offsets", batch.node_offsets)) return fault;
  if (batch.node_offsets.size() != batch.tuple_offsets.size()) {
    return "node_offsets: expected " + std::to_string(batch.tuple_offsets.size()) +
           " entries as tuple_offsets has, got " + std::to_string(batch.node_offsets.size());
  }
  if (batch.node_offsets.back() > kMostNodes) {
    return "node_offsets: expected at most 2^40 nodes, got " + text(batch.node_offsets.back());
  }
  if (batch.tuple_offsets.back() != batch.tuples.count) {
    return "tuple_offsets: expected the number of tuples, " + text(batch.tuples.count) +
           ", last, got " + text(batch.tuple_offsets.back());
  }
  for (int64_t graph = 0; graph < batch.graphs(); ++graph) {
    for (int64_t row = batch.tuple_offsets[graph]; row < batch.tuple_offsets[graph + 1]; ++row) {
      if (Fault fault = find_entry_fault(batch, tuples, graph, row)) return fault;
    }
  }
  return find_repetition(batch, tuples);
}

}  // namespace nsimplex::graph
