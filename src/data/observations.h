#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/table.h"

/// Tables of observations by features (cells by genes, for example), and what is known of each row.
namespace nsimplex::data {

struct Observations {
  at::Tensor values;                  ///< float64 [N, M]; NaN where missing
  std::vector<std::string> features;  ///< names of the columns; x0, x1, .. where a file has none
  std::vector<std::string> names;     ///< of the rows; empty where the file has none
  io::TextReading reading;            ///< what was decided to read a text
};

/// npy, npz or a text, as io::read_table() reads them. Throws InputError with file and line.
Observations read_observations(const std::string& path, const io::TableOptions& options = {});

struct Labels {
  at::Tensor numbers;                ///< int64 [N], into `classes`
  std::vector<std::string> classes;  ///< in the order of their text
  io::TextReading reading = {};      ///< what was decided to read them
};

/// One label a row of `observations`, from a text with a header: one column of labels in the order
/// of the rows, or a column of names and one of labels, in any order where the observations have
/// names too. Throws InputError, with file and line, for rows without a label, two labels of a
/// name, a number of rows that does not fit, and fewer than two classes.
Labels read_labels(const std::string& path, const Observations& observations);

/// Single-cell counts made comparable: rows with fewer than `least` non-zero values go; each row is
/// scaled to a sum of 10^4; log(1 + x). The numbers of the rows that stayed, int64.
at::Tensor normalise_counts(Observations& observations, int64_t least = 200);

/// The same scale without a look at which rows are poor: of new rows that are to be answered for.
at::Tensor scaled_counts(const at::Tensor& values);

/// Drops columns that fewer than `share` of the rows have; then every missing value becomes the
/// mean of that column over the `neighbours` nearest rows that have it, by the mean squared
/// difference of the columns, divided by their deviations, that both rows have (ties: the earlier
/// row); the mean of the column where no other row shares a column. Time O(N^2 M).
void impute_missing(Observations& observations, double share = 0.1, int64_t neighbours = 5);

/// Numbers of the `count` columns with the largest variance, ascending; all where there are fewer.
at::Tensor most_variable(const at::Tensor& values, int64_t count);

/// Rows in two parts, numbers ascending: round(share * size) of each class, at least one, in the
/// first.
struct SplitRows {
  at::Tensor first, second;
};
SplitRows stratified_split(const Labels& labels, double share, uint64_t seed);

}  // namespace nsimplex::data
