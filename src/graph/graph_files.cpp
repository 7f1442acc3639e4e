// Files as tensors: the parsers of io, and safetensors.

#include <ATen/ATen.h>
#include <nsimplex/graph_files.h>

#include "graph/graph_view.h"
#include "io/edge_list.h"
#include "io/graph_formats.h"
#include "io/safetensors.h"
#include "io/table.h"
#include "io/tuples.h"
#include "support/error.h"

namespace nsimplex {

using at::Tensor;

namespace {

// Converts errors of the readers into c10's, which this library's functions throw.
template <class Read>
auto reading(Read&& read) {
  try {
    return read();
  } catch (const InputError& error) {
    C10_THROW_ERROR(ValueError, error.what());
  }
}

io::TextOptions text_options(const TextFileOptions& options) {
  io::TextOptions result{.comment = options.comment};
  if (options.header) {
    result.header = *options.header ? io::HeaderLine::present : io::HeaderLine::absent;
  }
  if (options.index) {
    result.index = *options.index ? io::IndexColumn::present : io::IndexColumn::absent;
  }
  if (options.comment && options.comment->size() > 1) {
    throw InputError("comment: expected one character or none, got " +
                     quoted_name(*options.comment));
  }
  if (options.delimiter.empty()) return result;
  const auto delimiter = find_name<io::Delimiter>(options.delimiter);
  if (delimiter) {
    result.delimiter = *delimiter;
    return result;
  }
  throw InputError("delimiter: " +
                   expected_name<io::Delimiter>(quoted_name(options.delimiter),
                                                {.before = "", .last = " or ", .got = ""}));
}

Tensor to_tensor(const std::vector<double>& numbers) {
  return at::tensor(numbers, at::TensorOptions(at::kDouble));
}

// The matrix of integers that holds the tuples in a safetensors file.
Tensor tuples_of_safetensors(const std::string& path, const std::string& key) {
  const io::Safetensors file = io::read_safetensors(path);
  const Tensor* found = key.empty() ? nullptr : file.find(key);
  int64_t matrices = 0;
  for (const io::NamedTensor& each : file.tensors) {
    if (!key.empty() || each.tensor.dim() != 2) continue;
    found = &each.tensor;
    ++matrices;
  }
  if (!key.empty() && found == nullptr) {
    throw InputError("cannot read " + path + ": expected a tensor " + quoted_name(key));
  }
  if (key.empty() && matrices != 1) {
    throw InputError("cannot read " + path + ": expected one tensor of two dimensions, got " +
                     std::to_string(matrices));
  }
  if (found->dim() != 2 || !at::isIntegralType(found->scalar_type(), false)) {
    throw InputError("cannot read " + path + ": expected integers of shape [rows, nodes], got " +
                     c10::str(found->scalar_type(), " of shape ", found->sizes()));
  }
  return found->to(at::kLong);
}

TupleFile checked_tuples(const std::string& path, Tensor tuples, int64_t width) {
  const auto fail = [&](const std::string& why) { throw InputError("cannot read " + path + why); };
  if (tuples.size(1) == 0) fail(": tuples without nodes");
  if (width != 0 && tuples.size(1) != width) {
    fail(": expected tuples of " + std::to_string(width) + " nodes, got " +
         std::to_string(tuples.size(1)));
  }
  int64_t nodes = 0;
  if (tuples.numel() > 0) {
    const int64_t low = tuples.min().item<int64_t>();
    if (low < 0) fail(": expected nodes from 0 on, got " + std::to_string(low));
    const int64_t high = tuples.max().item<int64_t>();
    if (high == INT64_MAX) fail(": expected nodes below 2^63 - 1, got " + std::to_string(high));
    nodes = high + 1;
  }
  return {std::move(tuples), nodes, at::empty({0}, at::kLong), ""};
}

}  // namespace

TupleBatch read_graphs(const std::string& path) {
  const std::vector<io::SimpleGraph> graphs = reading([&] { return io::read_graphs(path); });
  std::vector<int64_t> tuples, tuple_offsets = {0}, node_offsets = {0};
  for (const io::SimpleGraph& graph : graphs) {
    for (const int64_t node : graph.edges) tuples.push_back(node_offsets.back() + node);
    tuple_offsets.push_back(std::ssize(tuples) / 2);
    node_offsets.push_back(node_offsets.back() + graph.nodes);
  }
  return {graph::to_tensor(std::move(tuples)).view({-1, 2}),
          graph::to_tensor(std::move(tuple_offsets)), graph::to_tensor(std::move(node_offsets)),
          Symmetry::undirected};
}

EdgeFile read_edges(const std::string& path, const TextFileOptions& options) {
  io::EdgeList list = reading([&] { return io::read_edge_list(path, text_options(options)); });
  return {graph::to_tensor(std::move(list.edges)).view({-1, 2}), to_tensor(list.weights),
          std::move(list.names), list.nodes, io::python_notice(list.reading)};
}

TupleFile read_tuples(const std::string& path, const TupleFileOptions& options) {
  return reading([&]() -> TupleFile {
    if (path.ends_with(".safetensors")) {
      return checked_tuples(path, tuples_of_safetensors(path, options.key), options.width);
    }
    io::Tuples tuples =
        io::read_tuples(path, {options.key, options.width, text_options(options.text)});
    const int64_t nodes = tuples.nodes(), width = tuples.width;
    return {graph::to_tensor(std::move(tuples.values)).view({-1, width}), nodes,
            graph::to_tensor(std::move(tuples.type_sizes)), io::python_notice(tuples.reading)};
  });
}

TableFile read_table(const std::string& path, const TableFileOptions& options) {
  io::TableOptions table_options{.text = reading([&] { return text_options(options.text); }),
                                 .allow_missing = options.allow_missing,
                                 .key = options.key};
  table_options.text.missing_words = options.missing_words;
  table_options.text.use = options.use;
  table_options.text.leave_out = options.leave_out;
  io::Table table = reading([&] { return io::read_table(path, table_options); });
  return {to_tensor(table.values).view({table.rows, table.width}), std::move(table.columns),
          std::move(table.labels), io::python_notice(table.reading)};
}

}  // namespace nsimplex
