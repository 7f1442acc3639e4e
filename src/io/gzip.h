// Declares how files that gzip packed are read.

#pragma once

#include <cstdint>
#include <vector>

#include "io/input_file.h"

namespace nsimplex::io {

/// Whether the bytes begin as those of gzip.
bool is_gzip(const Source& source);

/// What gzip packed (RFC 1952), one part or several after each other. Fails for damaged and
/// truncated bytes. Time and memory are proportional to the unpacked bytes.
std::vector<uint8_t> gunzipped(const Source& source);

}  // namespace nsimplex::io
