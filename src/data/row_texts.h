// Declares texts and numbers that belong to the rows of a table.

#pragma once

#include <string>
#include <vector>

#include "data/observations.h"
#include "io/input_file.h"

namespace nsimplex::data {

/// One text per row of a table, in the order of the table.
struct RowTexts {
  std::vector<std::string> texts;
  std::vector<int64_t> lines;  ///< the lines of the file that hold them
  io::TextReading reading;     ///< decisions made while reading it
};

/// Reads a text of one column in the order of the rows, or of two columns: names of rows and texts,
/// joined by name if the observations have names too. `what` is the noun in messages ("label").
/// `numbers`: a first line of numbers is data unless there is one line too many. Otherwise the
/// first line is a header.
///
/// Fails, with the line, for rows without a text, two texts for a name, another number of rows than
/// the observations have, and more than two columns.
RowTexts read_row_texts(const io::Source& source, const Observations& observations,
                        const std::string& what, bool numbers);

struct RowNumbers {
  at::Tensor values;        ///< float64 [N]
  io::TextReading reading;  ///< decisions made while reading a text
};

/// Reads a finite number per row of `observations`, from a text like read_row_texts(), or from npy
/// or npz. Throws InputError like it, and for values that are not numbers.
RowNumbers read_row_numbers(const std::string& path, const Observations& observations);

}  // namespace nsimplex::data
