// The functions of nsimplex/graph*.h as operators, for Python. A batch is its three tensors and the
// name of its symmetry, in this order.

#include <ATen/ATen.h>
#include <nsimplex/graph.h>
#include <nsimplex/graph_files.h>
#include <torch/library.h>

#include "graph/graph_view.h"
#include "support/named_option.h"

namespace nsimplex {
namespace graph {

using at::Tensor;

Symmetry parse_symmetry(std::string_view name, const char* function) {
  return named_option<Symmetry>(function, "symmetry", name,
                                {.before = "", .quote = "\"", .last = " or ", .got = "\""});
}

namespace {

using Batch = std::tuple<Tensor, Tensor, Tensor>;
using Derived = std::tuple<Tensor, Tensor, Tensor, Tensor>;

TupleBatch assemble(const char* function, const Tensor& tuples, const Tensor& tuple_offsets,
                    const Tensor& node_offsets, std::string_view symmetry) {
  return {tuples, tuple_offsets, node_offsets, parse_symmetry(symmetry, function)};
}

Batch parts(const TupleBatch& batch) {
  return {batch.tuples, batch.tuple_offsets, batch.node_offsets};
}

Derived parts(const DerivedTuples& derived) {
  const TupleBatch& batch = derived.batch;
  return {batch.tuples, batch.tuple_offsets, batch.node_offsets, derived.origin};
}

// Batch number `at` of a flat list with three tensors per batch.
TupleBatch nth(at::TensorList flat, size_t at, Symmetry symmetry) {
  return {flat[3 * at], flat[3 * at + 1], flat[3 * at + 2], symmetry};
}

std::vector<Tensor> flatten(const std::vector<TupleBatch>& batches) {
  std::vector<Tensor> flat;
  for (const TupleBatch& each : batches) {
    flat.insert(flat.end(), {each.tuples, each.tuple_offsets, each.node_offsets});
  }
  return flat;
}

Batch check(const Tensor& tuples, const Tensor& tuple_offsets, const Tensor& node_offsets,
            std::string_view symmetry) {
  return parts(
      tuple_batch(tuples, tuple_offsets, node_offsets, parse_symmetry(symmetry, "tuple_batch")));
}

void check_batch_features(const Tensor& tuples, const Tensor& features, std::string_view name) {
  check_features({tuples, {}, {}, Symmetry::ordered}, features, std::string(name).c_str());
}

Derived edges(const Tensor& edges, int64_t nodes, std::string_view symmetry, bool both_directions,
              bool loops) {
  return parts(
      edge_tuples(edges, nodes, {parse_symmetry(symmetry, "edge_tuples"), both_directions, loops}));
}

Batch complete(const Tensor& nodes, int64_t order, std::string_view symmetry, bool loops) {
  return parts(complete_tuples(nodes, order, parse_symmetry(symmetry, "complete_tuples"), loops));
}

Derived add_loops(const Tensor& tuples, const Tensor& tuple_offsets, const Tensor& node_offsets,
                  std::string_view symmetry) {
  return parts(with_loops(assemble("with_loops", tuples, tuple_offsets, node_offsets, symmetry)));
}

Derived orders(const Tensor& tuples, const Tensor& tuple_offsets, const Tensor& node_offsets,
               std::string_view symmetry) {
  return parts(all_orders(assemble("all_orders", tuples, tuple_offsets, node_offsets, symmetry)));
}

Batch project(const Tensor& tuples, const Tensor& tuple_offsets, const Tensor& node_offsets,
              std::string_view symmetry, int64_t order, std::string_view to,
              std::optional<bool> all_nodes) {
  return parts(
      project_tuples(assemble("project_tuples", tuples, tuple_offsets, node_offsets, symmetry),
                     order, parse_symmetry(to, "project_tuples"), all_nodes));
}

Batch concatenate(at::TensorList flat, std::string_view symmetry) {
  TORCH_CHECK_VALUE(flat.size() % 3 == 0, "[concatenate_graphs] batches: expected three tensors ",
                    "each, got ", flat.size());
  std::vector<TupleBatch> batches;
  for (size_t at = 0; 3 * at < flat.size(); ++at) {
    batches.push_back(nth(flat, at, parse_symmetry(symmetry, "concatenate_graphs")));
  }
  return parts(concatenate_graphs(batches));
}

std::vector<Tensor> split(const Tensor& tuples, const Tensor& tuple_offsets,
                          const Tensor& node_offsets, std::string_view symmetry) {
  return flatten(
      split_graphs(assemble("split_graphs", tuples, tuple_offsets, node_offsets, symmetry)));
}

Tensor node_and_edge(const Tensor& tuples, const Tensor& tuple_offsets, const Tensor& node_offsets,
                     const Tensor& origin, const Tensor& node_features,
                     const Tensor& edge_features) {
  return node_and_edge_features({{tuples, tuple_offsets, node_offsets, Symmetry::ordered}, origin},
                                node_features, edge_features);
}

std::tuple<Tensor, Tensor> neighbours(const Tensor& tuples, const Tensor& tuple_offsets,
                                      const Tensor& node_offsets, std::string_view symmetry) {
  Adjacency rows = adjacency(assemble("adjacency", tuples, tuple_offsets, node_offsets, symmetry));
  return {std::move(rows.offsets), std::move(rows.neighbours)};
}

Tensor components(const Tensor& tuples, const Tensor& tuple_offsets, const Tensor& node_offsets,
                  std::string_view symmetry) {
  return connected_components(
      assemble("connected_components", tuples, tuple_offsets, node_offsets, symmetry));
}

Batch labelled(const Tensor& labels, const Tensor& node_offsets) {
  return parts(label_cliques(labels, node_offsets));
}

Batch completed(const Tensor& tuples, const Tensor& tuple_offsets, const Tensor& node_offsets,
                std::string_view symmetry) {
  return parts(component_cliques(
      assemble("component_cliques", tuples, tuple_offsets, node_offsets, symmetry)));
}

std::vector<Tensor> all_simplices(const Tensor& tuples, const Tensor& tuple_offsets,
                                  const Tensor& node_offsets, std::string_view symmetry,
                                  int64_t largest) {
  return flatten(
      simplices(assemble("simplices", tuples, tuple_offsets, node_offsets, symmetry), largest));
}

Derived lines(const Tensor& tuples, const Tensor& tuple_offsets, const Tensor& node_offsets,
              std::string_view symmetry) {
  LineGraph graph =
      line_graph(assemble("line_graph", tuples, tuple_offsets, node_offsets, symmetry));
  return parts(DerivedTuples{std::move(graph.batch), std::move(graph.shared)});
}

std::tuple<Tensor, Tensor> laplacian(const Tensor& tuples, const Tensor& tuple_offsets,
                                     const Tensor& node_offsets, std::string_view symmetry,
                                     int64_t count) {
  LaplacianEigenvectors result = laplacian_eigenvectors(
      assemble("laplacian_eigenvectors", tuples, tuple_offsets, node_offsets, symmetry), count);
  return {std::move(result.values), std::move(result.vectors)};
}

Batch graphs_of_file(std::string_view path) { return parts(read_graphs(std::string(path))); }

TextFileOptions text_of(std::optional<bool> header, std::optional<bool> index,
                        std::string_view delimiter, std::optional<std::string_view> comment) {
  TextFileOptions options{header, index, std::string(delimiter), std::nullopt};
  if (comment) options.comment = std::string(*comment);
  return options;
}

std::tuple<Tensor, Tensor, std::vector<std::string>, int64_t, std::string> edges_of_file(
    std::string_view path, std::optional<bool> header, std::optional<bool> index,
    std::string_view delimiter, std::optional<std::string_view> comment) {
  EdgeFile file = read_edges(std::string(path), text_of(header, index, delimiter, comment));
  return {file.edges, file.weights, file.names, file.nodes, file.guesses};
}

std::tuple<Tensor, int64_t, Tensor, std::string> tuples_of_file(
    std::string_view path, std::string_view key, int64_t width, std::optional<bool> header,
    std::optional<bool> index, std::string_view delimiter,
    std::optional<std::string_view> comment) {
  TupleFile file = read_tuples(
      std::string(path), {std::string(key), width, text_of(header, index, delimiter, comment)});
  return {file.tuples, file.nodes, file.type_sizes, file.guesses};
}

std::tuple<Tensor, std::vector<std::string>, std::vector<std::string>, std::string> table_of_file(
    std::string_view path, std::optional<bool> header, bool allow_missing, std::string_view key,
    std::optional<bool> index, std::string_view delimiter, std::optional<std::string_view> comment,
    std::vector<std::string> missing_words, std::vector<std::string> use,
    std::vector<std::string> leave_out) {
  TableFile file =
      read_table(std::string(path),
                 {text_of(header, index, delimiter, comment), allow_missing, std::string(key),
                  std::move(missing_words), std::move(use), std::move(leave_out)});
  return {file.values, file.columns, file.labels, file.guesses};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::string batch =
      "(Tensor tuples, Tensor tuple_offsets, Tensor node_offsets, str symmetry";
  const std::string a_batch = ") -> (Tensor, Tensor, Tensor)";
  const std::string a_derived = ") -> (Tensor, Tensor, Tensor, Tensor)";
  m.def(("graph_check" + batch + a_batch).c_str(), TORCH_FN(check));
  m.def("graph_check_features(Tensor tuples, Tensor features, str name) -> ()",
        TORCH_FN(check_batch_features));
  m.def(("graph_edges(Tensor edges, int nodes, str symmetry, bool both_directions, bool loops" +
         a_derived)
            .c_str(),
        TORCH_FN(edges));
  m.def(("graph_complete(Tensor nodes, int order, str symmetry, bool loops" + a_batch).c_str(),
        TORCH_FN(complete));
  m.def(("graph_with_loops" + batch + a_derived).c_str(), TORCH_FN(add_loops));
  m.def(("graph_all_orders" + batch + a_derived).c_str(), TORCH_FN(orders));
  m.def(("graph_project" + batch + ", int order, str to, bool? all_nodes=None" + a_batch).c_str(),
        TORCH_FN(project));
  m.def(("graph_concatenate(Tensor[] batches, str symmetry" + a_batch).c_str(),
        TORCH_FN(concatenate));
  m.def(("graph_split" + batch + ") -> Tensor[]").c_str(), TORCH_FN(split));
  m.def("graph_derived_features(Tensor features, Tensor origin) -> Tensor",
        TORCH_FN(derived_features));
  m.def(
      "graph_node_and_edge_features(Tensor tuples, Tensor tuple_offsets, Tensor node_offsets, "
      "Tensor origin, Tensor node_features, Tensor edge_features) -> Tensor",
      TORCH_FN(node_and_edge));
  m.def(("graph_adjacency" + batch + ") -> (Tensor, Tensor)").c_str(), TORCH_FN(neighbours));
  m.def(("graph_components" + batch + ") -> Tensor").c_str(), TORCH_FN(components));
  m.def("graph_label_cliques(Tensor labels, Tensor node_offsets) -> (Tensor, Tensor, Tensor)",
        TORCH_FN(labelled));
  m.def(("graph_component_cliques" + batch + a_batch).c_str(), TORCH_FN(completed));
  m.def(("graph_simplices" + batch + ", int largest) -> Tensor[]").c_str(),
        TORCH_FN(all_simplices));
  m.def(("graph_line" + batch + a_derived).c_str(), TORCH_FN(lines));
  m.def(("graph_laplacian" + batch + ", int count) -> (Tensor, Tensor)").c_str(),
        TORCH_FN(laplacian));
  m.def(("read_graphs(str path" + a_batch).c_str(), TORCH_FN(graphs_of_file));
  const std::string text =
      "bool? header=None, bool? index=None, str delimiter='', str? comment=None";
  m.def(("read_edges(str path, " + text + ") -> (Tensor, Tensor, str[], int, str)").c_str(),
        TORCH_FN(edges_of_file));
  m.def(("read_tuples(str path, str key, int width, " + text + ") -> (Tensor, int, Tensor, str)")
            .c_str(),
        TORCH_FN(tuples_of_file));
  m.def(
      "read_table(str path, bool? header, bool allow_missing, str key, bool? index, str delimiter, "
      "str? comment, str[] missing_words, str[] use, str[] leave_out) -> "
      "(Tensor, str[], str[], str)",
      TORCH_FN(table_of_file));
}

}  // namespace
}  // namespace graph
}  // namespace nsimplex
