#pragma once

#include "io/array.h"
#include "io/input_file.h"

namespace nsimplex::io {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct NpyHeader {
  std::string descr;  ///< the type of the elements, as "<f8"; of structures the list as it stands
  bool fortran = false;
  std::vector<int64_t> shape;
  uint64_t data = 0;  ///< where the elements begin

  /// Whether the elements are, or hold, Python objects.
  bool is_pickled() const { return descr.find('O') != std::string::npos; }
};

/// A header is no longer, which is what format version 1 has room for; NumPy itself takes 10,000.
inline constexpr uint64_t kLongestHeader = 65535;
/// Where the longest header ends at most.
inline constexpr uint64_t kHeaderEnd = 12 + kLongestHeader;

/// The header alone, whatever the elements are, of at least the first kHeaderEnd bytes, or all.
NpyHeader parse_npy_header(const Source& source);

/// Fails where `size` bytes are not the whole of an npy file with that header, or its elements are
/// not read here. What is to be unpacked is checked so before it takes memory.
void check_npy(const Source& source, const NpyHeader& header, uint64_t size);

/// An array as numpy.save writes it (format versions 1 to 3): booleans, integers of 1 to 8 bytes,
/// floating point of 2 to 8, strings (S and U), little-endian, C or Fortran order.
///
/// Fails for what is truncated or too long, for big-endian, complex, structured and other elements,
/// for more than kMostAxes axes, and for pickled Python objects, which are never read.
/// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
Array parse_npy(const Source& source);

/// The bytes of an npy file with doubles in C order, as many as the shape has. Format version 1.0.
std::string npy_bytes(std::span<const double> values, std::span<const int64_t> shape);

}  // namespace nsimplex::io
