// Declares the header of a safetensors file, its dtypes and its checksums.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_file.h"

namespace nsimplex::io {

enum class SafetensorsType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

struct SafetensorsDtype {
  std::string_view name;
  SafetensorsType type;
  uint64_t width;  ///< bytes of an element
};

inline constexpr std::array<SafetensorsDtype, 10> kSafetensorsDtypes = {{
    {"F64", SafetensorsType::f64, 8},
    {"F32", SafetensorsType::f32, 4},
    {"F16", SafetensorsType::f16, 2},
    {"BF16", SafetensorsType::bf16, 2},
    {"I64", SafetensorsType::i64, 8},
    {"I32", SafetensorsType::i32, 4},
    {"I16", SafetensorsType::i16, 2},
    {"I8", SafetensorsType::i8, 1},
    {"U8", SafetensorsType::u8, 1},
    {"BOOL", SafetensorsType::boolean, 1},
}};

inline constexpr size_t kLengthBytes = 8;          ///< of the header's length at the file's start
inline constexpr size_t kMaxHeader = 100'000'000;  ///< the format's own limit
inline constexpr std::string_view kMetadata = "__metadata__";

}  // namespace nsimplex::io

// Checksums of a safetensors file, as text in its "__metadata__", which other readers ignore.

namespace nsimplex::io {

/// For the tensors: a JSON object with the checksum of each tensor's bytes by its name.
inline constexpr std::string_view kTensorChecksums = "tensor_checksums";
/// For the bytes before the data: the header's length and the header, with eight zeros in place of
/// this value.
inline constexpr std::string_view kHeaderChecksum = "header_checksum";
inline constexpr std::string_view kNoChecksum = "00000000";

/// CRC-32 (the polynomial of zlib) in eight hexadecimal digits. It detects every change of up to 32
/// bits in a row.
std::string checksum(std::span<const uint8_t> bytes);

/// Puts the checksum into a header whose metadata have kNoChecksum under kHeaderChecksum. `head` is
/// the length and the header.
void seal_header(std::string& head);

enum class Seal { none, whole, broken };

/// Whether a header has a checksum, and whether it matches.
Seal seal_of(std::string_view head);

struct SafetensorsEntry {
  std::string name;
  SafetensorsType type = SafetensorsType::f32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  ///< its bytes, counted from the first one after the header
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        ///< in the order of their data
  std::map<std::string, std::string> metadata;  ///< "__metadata__"
  uint64_t data = 0;                            ///< offset of the data in the file
};

/// Parses the header of a safetensors file, whose bytes are all in `source`: 8 bytes little-endian
/// length, then JSON.
///
/// Fails for a truncated file, a header of more than 100 MB, JSON of another form, a name or field
/// given twice, dtypes that are not in kSafetensorsDtypes, more than kMostAxes axes, and data whose
/// size does not match the shape, or that overlap, leave a hole or end before the file does. The
/// time is proportional to the bytes of the header (times the logarithm of the number of tensors if
/// they are not in the order of their data). The memory is at most 64 times the header.
SafetensorsHeader parse_safetensors_header(const Source& source);

}  // namespace nsimplex::io
