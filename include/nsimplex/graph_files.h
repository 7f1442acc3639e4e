// Reads graphs, tuples and tables from files.

#pragma once

#include <nsimplex/graph.h>

#include <optional>
#include <string>
#include <vector>

/// Reads graphs, tuples and tables from files. The bytes of a file determine its format, except for
/// the names given below. An unusable file is a c10::ValueError with one line: "cannot read PATH:
/// WHY", with the line or row. Nothing pickled is ever read.
namespace nsimplex {

/// Reads the undirected graphs of a file as one batch: lines of graph6, or an npy array of graph6
/// strings, in C order. Format: https://users.cecs.anu.edu.au/~bdm/data/formats.txt
NSIMPLEX_API TupleBatch read_graphs(const std::string& path);

/// How to read a text of rows and columns. Options that are not set are guessed from the text.
///
/// The first row has names if it holds words that are not values, if it has one cell less than the
/// other rows or begins with an empty cell, or if it has consecutive whole numbers or whole numbers
/// above fractions. The first column has row names if the header has no name for it or if its cells
/// are different names. Bytes are UTF-8, or UTF-16 with a byte order mark. Lines end with LF, CR LF
/// or CR.
struct TextFileOptions {
  std::optional<bool> header;  ///< whether the first row has names
  std::optional<bool> index;   ///< whether the first column has the names of the rows
  std::string delimiter;       ///< comma, tab, semicolon, pipe or space; "": guessed from the text
  /// A line that begins with this character is a comment. Absent: # above the first row; in lists
  /// of edges, # and % anywhere.
  std::optional<std::string> comment;
};

/// The edges of a file in its order, including repetitions and loops.
struct EdgeFile {
  at::Tensor edges;                ///< int64 [E, 2]
  at::Tensor weights;              ///< float64 [E], or [0] where the file has none
  std::vector<std::string> names;  ///< of the nodes; empty if the file numbers them
  int64_t nodes = 0;
  std::string guesses;  ///< decisions based on the values alone, which may be wrong; or ""
};

/// Reads lines "from to" or "from to weight", separated by blanks, tabs, commas or semicolons. #
/// and % begin comments. A header may name the columns of sources, targets and weights, in any
/// order and among other columns. If every node is a number from 0 on, the numbers are the nodes,
/// and the largest one gives their count. But numbers in quotes, and numbers far above the number
/// of edges, are names in ascending order. Other nodes are names, numbered in the order in which
/// they appear.
NSIMPLEX_API EdgeFile read_edges(const std::string& path, const TextFileOptions& options = {});

/// The tuples of a file in its order, including repetitions.
struct TupleFile {
  at::Tensor tuples;  ///< int64 [m, k]
  int64_t nodes = 0;  ///< of all types, or one more than the largest number

  /// int64 [k]: the number of nodes of each column's type, or [0] without types. The columns of
  /// `tuples` share one numbering: the nodes of column c begin at the sum of the sizes before it.
  at::Tensor type_sizes;
  std::string guesses;  ///< as in EdgeFile
};

struct TupleFileOptions {
  /// The array of an npz; "" is train_data, test_data, or the only one with two dimensions. Or the
  /// tensor of a *.safetensors file; "" is the only one with two dimensions.
  std::string key;
  int64_t width = 0;  ///< expected k; 0: any
  TextFileOptions text = {};
};

/// Reads tuples from npz, npy, csv, tsv, or a *.safetensors file. Integers may be stored as
/// floating point numbers without a fraction. An npz may hold nums_type, the number of nodes of
/// each column's type. Then every column counts its nodes from 0.
NSIMPLEX_API TupleFile read_tuples(const std::string& path, const TupleFileOptions& options = {});

/// A table of numbers with named columns.
struct TableFile {
  at::Tensor values;                 ///< float64 [rows, columns]; NaN where missing
  std::vector<std::string> columns;  ///< names of the columns; empty if there are none
  std::vector<std::string> labels;   ///< names of the rows; empty if there are none
  std::string guesses;               ///< as in EdgeFile
};

struct TableFileOptions {
  TextFileOptions text = {};
  /// reads an empty cell, NA, N/A, NaN, null, None, ?, - and similar words as missing
  bool allow_missing = true;
  std::string key;  ///< the array of an npz; "" if it has only one with two dimensions
  std::vector<std::string> missing_words = {};  ///< further words for missing values
  std::vector<std::string> use = {};            ///< names of the columns to read; empty: all
  std::vector<std::string> leave_out = {};      ///< names of the columns to skip
};

/// Reads a table from npy, npz or a text, for example csv. Cells may be quoted. A number that is
/// too small for a double is read as 0. A number that is too large is an error.
NSIMPLEX_API TableFile read_table(const std::string& path, const TableFileOptions& options = {});

}  // namespace nsimplex
