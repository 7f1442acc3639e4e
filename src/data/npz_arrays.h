#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/npz.h"

// Arrays of an npz file that have to fit together. What does not is an InputError of one line with
// the file and the array.

namespace nsimplex::data {

/// Fails where an array has not so many dimensions.
void expect_dimensions(const io::Array& array, size_t dimensions);

/// Fails where it has not `rows` rows, one for each of what `of` names.
void expect_rows(const io::Array& array, int64_t rows, const char* of);

/// Integers of one dimension.
std::vector<int64_t> read_integers(const io::Npz& npz, const std::string& name);

/// Offsets into `rows` rows of what `of` names: they rise from 0 to that number.
std::vector<int64_t> read_offsets(const io::Npz& npz, const std::string& name, int64_t rows,
                                  const char* of);

/// Numbers, all finite, of any shape.
std::vector<double> finite_numbers(const io::Array& array);

}  // namespace nsimplex::data
