#pragma once

#include <nsimplex/graph.h>

#include <optional>
#include <string>
#include <vector>

/// Graphs, tuples and tables from files. Which format a file has, its bytes say, except where a
/// name is given below. A file that cannot be used is a c10::ValueError of one line: "cannot read
/// PATH: WHY", with the line or row. Nothing pickled is ever read.
namespace nsimplex {

/// Undirected graphs of a file, one batch: lines of graph6, or an npy array of graph6 strings, in C
/// order. Format: https://users.cecs.anu.edu.au/~bdm/data/formats.txt
NSIMPLEX_API TupleBatch read_graphs(const std::string& path);

/// Edges as a file lists them: in its order, repetitions and loops included.
struct EdgeFile {
  at::Tensor edges;                ///< int64 [E, 2]
  at::Tensor weights;              ///< float64 [E], or [0] where the file has none
  std::vector<std::string> names;  ///< of the nodes; empty where the file numbers them
  int64_t nodes = 0;
};

/// Lines "from to" or "from to weight", between spaces, tabs, commas or semicolons; # and % begin
/// comments. Where every node is a number from 0 on these are the nodes, as many as the largest
/// says; otherwise they are names, numbered as they come.
NSIMPLEX_API EdgeFile read_edges(const std::string& path);

/// Tuples as a file lists them: in its order, repetitions included.
struct TupleFile {
  at::Tensor tuples;  ///< int64 [m, k]
  int64_t nodes = 0;  ///< of all types, or one more than the largest

  /// int64 [k]: how many nodes the type of each column has, or [0] without types. The columns of
  /// `tuples` are numbered through: those of column c begin at the sum of the sizes before it.
  at::Tensor type_sizes;
};

struct TupleFileOptions {
  /// Of npz the array: "" is train_data, test_data, or the only one of two dimensions. Of a file
  /// *.safetensors the tensor: "" is the only one of two dimensions.
  std::string key;
  int64_t width = 0;  ///< expected k; 0: any
};

/// Tuples from npz, npy, csv, tsv, or a file *.safetensors. Integers may come as floating point
/// numbers without fraction. An npz may hold nums_type, the number of nodes of each column's type;
/// then the columns count their nodes from 0, each for itself.
NSIMPLEX_API TupleFile read_tuples(const std::string& path, const TupleFileOptions& options = {});

/// Numbers in rows and named columns.
struct TableFile {
  at::Tensor values;                 ///< float64 [rows, columns]; NaN where missing
  std::vector<std::string> columns;  ///< their names; empty where there are none
  std::vector<std::string> labels;   ///< names of the rows; empty where there are none
};

struct TableFileOptions {
  std::optional<bool> header;  ///< of text: absent: a first line with a cell that is no number
  bool allow_missing = true;   ///< an empty cell, NA, N/A, NaN, nan, null, NULL, None
  std::string key;             ///< of npz: the array; "" where it has one of two dimensions
};

/// A table from csv, tsv, npy or npz. In text the first column holds labels where its name is
/// empty, or where the header has one cell less than every row; cells may be quoted.
NSIMPLEX_API TableFile read_table(const std::string& path, const TableFileOptions& options = {});

}  // namespace nsimplex
