#pragma once

#include "io/array.h"
#include "io/source.h"

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

/// The header alone, whatever the elements are.
NpyHeader parse_npy_header(const Source& source);

/// An array as numpy.save writes it (format versions 1 to 3): booleans, integers of 1 to 8 bytes,
/// floating point of 2 to 8, strings (S and U), little-endian, C or Fortran order.
///
/// Fails for what is truncated or too long, for big-endian, complex, structured and other elements,
/// and for pickled Python objects, which are never read.
/// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
Array parse_npy(const Source& source);

/// The bytes of an npy file with doubles in C order, as many as the shape has. Format version 1.0.
std::string npy_bytes(std::span<const double> values, std::span<const int64_t> shape);

}  // namespace nsimplex::io
