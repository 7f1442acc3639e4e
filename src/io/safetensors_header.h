#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/safetensors_format.h"
#include "io/source.h"

namespace nsimplex::io {

struct SafetensorsEntry {
  std::string name;
  SafetensorsType type = SafetensorsType::f32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  ///< its bytes, counted from the first behind the header
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        ///< in the order of their data
  std::map<std::string, std::string> metadata;  ///< "__metadata__"
  uint64_t data = 0;                            ///< where the data begin in the file
};

/// The header of a safetensors file, of which `source` has all bytes: 8 bytes little-endian length,
/// then JSON.
///
/// Fails for what is truncated, a header of more than 100 MB, JSON of another form, a name or field
/// given twice, dtypes that are not in kSafetensorsDtypes, more than kMostAxes axes, and data that
/// are not as long as the shape, overlap, leave a hole or end before the file does. Takes time
/// proportional to the bytes of the header (times the logarithm of the number of tensors, where
/// they do not come in the order of their data) and at most 64 times their memory.
SafetensorsHeader parse_safetensors_header(const Source& source);

}  // namespace nsimplex::io
