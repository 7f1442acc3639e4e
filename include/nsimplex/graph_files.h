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

/// How a text of rows and columns is read. What is not given here, the text decides: the first row
/// has names where it holds words that are no values, where it has a cell less than the other rows
/// or begins with an empty one, and where it has consecutive whole numbers or whole numbers above
/// fractions; the first column has row names where the header has no name for it or where its cells
/// are different names. Bytes are UTF-8, or UTF-16 with a byte order mark; lines end with LF, CR LF
/// or CR.
struct TextFileOptions {
  std::optional<bool> header;  ///< whether the first row has names
  std::optional<bool> index;   ///< whether the first column has the names of the rows
  std::string delimiter;       ///< comma, tab, semicolon, pipe or space; "": what the text shows
  /// A line that begins with this character is a comment; absent: # above the first row, and % too
  /// in lists of edges, anywhere.
  std::optional<std::string> comment;
};

/// Edges as a file lists them: in its order, repetitions and loops included.
struct EdgeFile {
  at::Tensor edges;                ///< int64 [E, 2]
  at::Tensor weights;              ///< float64 [E], or [0] where the file has none
  std::vector<std::string> names;  ///< of the nodes; empty where the file numbers them
  int64_t nodes = 0;
  std::string guesses;  ///< what was decided by the values alone, so that it may be wrong; or ""
};

/// Lines "from to" or "from to weight", between blanks, tabs, commas or semicolons; # and % begin
/// comments. A header may name the columns of sources, targets and weights, in any order and among
/// others. Where every node is a number from 0 on these are the nodes, as many as the largest says,
/// but numbers in quotes and numbers far above the number of edges are names, in ascending order;
/// otherwise they are names, numbered as they come.
NSIMPLEX_API EdgeFile read_edges(const std::string& path, const TextFileOptions& options = {});

/// Tuples as a file lists them: in its order, repetitions included.
struct TupleFile {
  at::Tensor tuples;  ///< int64 [m, k]
  int64_t nodes = 0;  ///< of all types, or one more than the largest

  /// int64 [k]: how many nodes the type of each column has, or [0] without types. The columns of
  /// `tuples` are numbered through: those of column c begin at the sum of the sizes before it.
  at::Tensor type_sizes;
  std::string guesses;  ///< as in EdgeFile
};

struct TupleFileOptions {
  /// Of npz the array: "" is train_data, test_data, or the only one of two dimensions. Of a file
  /// *.safetensors the tensor: "" is the only one of two dimensions.
  std::string key;
  int64_t width = 0;  ///< expected k; 0: any
  TextFileOptions text = {};
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
  std::string guesses;               ///< as in EdgeFile
};

struct TableFileOptions {
  TextFileOptions text = {};
  bool allow_missing = true;  ///< an empty cell, NA, N/A, NaN, null, None, ?, - and the like
  std::string key;            ///< of npz: the array; "" where it has one of two dimensions
  std::vector<std::string> missing_words = {};  ///< further ones
  std::vector<std::string> use = {};            ///< names of the columns to read; empty: all
  std::vector<std::string> leave_out = {};      ///< names of columns to pass over
};

/// A table from npy, npz or a text, csv for example; cells may be quoted. A number nearer to 0 than
/// any double is 0; one beyond the largest double is an error.
NSIMPLEX_API TableFile read_table(const std::string& path, const TableFileOptions& options = {});

}  // namespace nsimplex
