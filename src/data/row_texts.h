#pragma once

#include <string>
#include <vector>

#include "data/observations.h"
#include "io/input_file.h"

namespace nsimplex::data {

/// What a file says of each row of a table: one text a row, in the order of the table.
struct RowTexts {
  std::vector<std::string> texts;
  std::vector<int64_t> lines;  ///< of the file, where they stand
  io::TextReading reading;     ///< what was decided to read it
};

/// From a text of one column, in the order of the rows, or of two: names of rows and what is said
/// of them, joined by name where the observations have names, too. `what` is what messages call it
/// ("label"). `numbers`: a first line of numbers is one unless there is one line too many; else the
/// first line is a header.
///
/// Fails, with the line, for rows without a text, two texts of a name, another number of rows than
/// the observations have, and more than two columns.
RowTexts read_row_texts(const io::Source& source, const Observations& observations,
                        const std::string& what, bool numbers);

struct RowNumbers {
  at::Tensor values;        ///< float64 [N]
  io::TextReading reading;  ///< what was decided to read a text
};

/// A finite number of each row of `observations`, from a text as read_row_texts() reads it, or from
/// npy or npz. Throws InputError as it does, and for what is no number.
RowNumbers read_row_numbers(const std::string& path, const Observations& observations);

}  // namespace nsimplex::data
