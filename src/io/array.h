// Declares an array of a plain element type as a file holds it.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nsimplex::io {

/// No array has more axes: NumPy's own limit, and more than Torch's operators take.
inline constexpr size_t kMostAxes = 64;

enum class ElementKind {
  boolean,
  signed_integer,
  unsigned_integer,
  floating,  ///< 2, 4 or 8 bytes
  bytes,     ///< numpy's S: strings of a fixed number of bytes
  text       ///< numpy's U: strings of a fixed number of UTF-32 characters
};

/// An array of a plain element type, in C order.
struct Array {
  std::string name;  ///< for errors: the file, and the array in it
  ElementKind kind = ElementKind::floating;
  int64_t width = 0;  ///< bytes of an element
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;  ///< little-endian elements

  int64_t count() const { return static_cast<int64_t>(data.size()) / width; }
  bool is_number() const { return kind != ElementKind::bytes && kind != ElementKind::text; }
  std::string shape_text() const;  ///< "[3, 2]"

  /// Throws InputError "cannot read NAME: WHY".
  [[noreturn]] void fail(const std::string& why) const;

  /// All elements as numbers. 64-bit integers are rounded to double. Fails for strings.
  std::vector<double> doubles() const;

  /// All elements as integers. Floating numbers are accepted if they have no fraction and are
  /// exact, up to 2^53. Fails for strings, fractions, NaN and numbers that int64 cannot hold.
  std::vector<int64_t> integers() const;

  /// All elements as strings, UTF-8, without trailing NULs. Fails for numbers.
  std::vector<std::string> strings() const;
};

}  // namespace nsimplex::io
