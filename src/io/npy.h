// Declares the reading and writing of npy files.

#pragma once

#include "io/array.h"
#include "io/input_file.h"

namespace nsimplex::io {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct NpyHeader {
  std::string descr;  ///< type of the elements, as "<f8"; for structures, the list as text
  bool fortran = false;
  std::vector<int64_t> shape;
  uint64_t data = 0;  ///< where the elements begin

  /// Whether the elements are, or hold, Python objects.
  bool is_pickled() const { return descr.find('O') != std::string::npos; }
};

/// The longest header, which is the limit of format version 1. NumPy itself accepts 10,000.
inline constexpr uint64_t kLongestHeader = 65535;
/// The largest offset at which a header ends.
inline constexpr uint64_t kHeaderEnd = 12 + kLongestHeader;

/// Parses only the header, for any elements. `source` must have at least the first kHeaderEnd
/// bytes, or all.
NpyHeader parse_npy_header(const Source& source);

/// Fails if `size` bytes are not a whole npy file with that header, or if its elements are not
/// supported. Packed arrays are checked with this before they take memory.
void check_npy(const Source& source, const NpyHeader& header, uint64_t size);

/// An array as numpy.save writes it (format versions 1 to 3): booleans, integers of 1 to 8 bytes,
/// floating point of 2 to 8, strings (S and U), little-endian, C or Fortran order.
///
/// Fails for truncated or too long files, for big-endian, complex, structured and other elements,
/// for more than kMostAxes axes, and for pickled Python objects, which are never read.
/// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
Array parse_npy(const Source& source);

/// The bytes of an npy file with doubles in C order, as many as the shape has. Format version 1.0.
std::string npy_bytes(std::span<const double> values, std::span<const int64_t> shape);

}  // namespace nsimplex::io
